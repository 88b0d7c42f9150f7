"""Annotations: items labelled by models or people; accepted labels are facets of tasks (NEEDS A18)."""
