"""Claude Code: the real program, in print mode."""
