"""Scaffold kind ``person``."""
