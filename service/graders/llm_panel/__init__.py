"""Would a client pay for this? Several votes of one or several judges, each field by majority (PayWorthy)."""
