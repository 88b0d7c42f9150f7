"""What our loops with tools have in common: the conversation, the tools of the sandbox, the calls of one answer."""
