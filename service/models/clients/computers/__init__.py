"""The providers' own computer tools, one module per API: entry of the request, calls, results."""
