"""What the gateway knows of each provider's API. Pure: bytes in, facts out."""
