"""How each provider's models say what they want done on a screen."""
