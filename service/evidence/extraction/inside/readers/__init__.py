"""One module per family of files. Which reader takes which kind: ``registry.py``."""
