"""Method ``script``: the task's own tests decide, in a fresh sandbox over what was sealed."""
