"""Work in the background that clients follow as an operation: one module per kind, named in ``registry.py``."""
