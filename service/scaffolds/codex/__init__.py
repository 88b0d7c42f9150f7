"""Codex CLI: the real program, ``codex exec``."""
