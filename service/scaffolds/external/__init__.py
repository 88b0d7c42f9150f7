"""Scaffold kind ``external``."""
