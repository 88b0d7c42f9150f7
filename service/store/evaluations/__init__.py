"""Evaluations: their rows, agents, tasks, slots and log.

Order of locks: runs first, then the evaluation, then its agents. A transaction that changes a run locks the evaluation's row
at its end (``count_run``, migration 0007), with the run's lock in its hands; who has written an evaluation's row therefore
touches no run of it any more. Who decides on an evaluation as a whole takes :func:`evaluations.turn`, which no run waits for.
"""
