"""``workstead eval``: evaluations from the command line."""
