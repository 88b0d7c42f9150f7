"""Delivers the task's reference solution: shows that a task can be passed."""
