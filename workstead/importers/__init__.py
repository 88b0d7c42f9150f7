"""Importers: what reads the files of a published benchmark and makes a manifest of them. They run on the client."""
