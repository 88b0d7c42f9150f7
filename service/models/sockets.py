"""What every client of a Unix socket of this machine needs."""

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody: behind a socket one speaks in the clear, and to load whom else to trust would take each new client 29 ms."""
