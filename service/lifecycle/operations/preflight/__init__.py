"""Preflight of an evaluation: what is tried out before its runs are made, and what is said of it."""
