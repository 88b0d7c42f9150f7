"""Typed answers from one JSON file of the deliverable, compared with expected values from a hidden asset."""
