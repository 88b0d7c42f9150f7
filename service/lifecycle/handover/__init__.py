"""Results that can be handed over: what leaves the house, and how whoever gets it can compute it again."""
