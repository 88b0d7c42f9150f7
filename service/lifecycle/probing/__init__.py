"""Probes of judges: deliverables under conditions, judged by a method as it stands."""
