"""The model gateway: the only way out of a sandbox, with the keys and without the engine (CONTRACTS 6)."""
