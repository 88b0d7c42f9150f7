"""The demo of computer use: a task on a screen, and what its scripted model does there."""
