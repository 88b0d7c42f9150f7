"""Scaffold kind ``remote``."""
