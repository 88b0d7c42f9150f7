"""Evaluations: drafted with an estimate, started, carried on and ended. What a run does, its own steps do."""
