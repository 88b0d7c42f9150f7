"""Gemini CLI: the real program, without a terminal."""
