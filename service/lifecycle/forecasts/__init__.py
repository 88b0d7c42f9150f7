"""Forecast sets: drawn up with an estimate, asked for by an operation, or brought from elsewhere (NEEDS A25)."""
