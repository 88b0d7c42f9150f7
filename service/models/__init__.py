"""What our own loops and tests speak to models with."""
