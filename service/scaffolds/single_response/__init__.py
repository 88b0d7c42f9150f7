"""Our own agent without tools: one answer, from which the files are read."""
