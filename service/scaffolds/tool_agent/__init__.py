"""Our own agent with tools: a loop on the shell of a sandbox."""
