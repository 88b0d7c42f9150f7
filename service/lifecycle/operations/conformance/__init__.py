"""Operation ``conformance``: its handler, the making of runs, their looking after, what is kept of them."""
