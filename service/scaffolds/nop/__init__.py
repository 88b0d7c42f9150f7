"""Delivers nothing: shows that a task cannot be passed by doing nothing."""
