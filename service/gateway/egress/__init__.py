"""The proxy on a sandbox's second planted port: where network policy ``allowlist`` or ``web`` lets out (NEEDS A1)."""
