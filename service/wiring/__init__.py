"""Composition roots, one per process: settings → store, sandboxes, lifecycle → api, worker, gateway, grader.

Each process imports its own and no other: what a process does not run, it neither loads nor holds.
"""
