"""Surveys: sets of questions that models are asked one by one, each until it is answered once (forecasts, annotations)."""

from enum import StrEnum

MOST_ASKS = 2
"""The first question, and one more after an answer that does not fit, at twice the tokens; then there is none."""


class SurveyState(StrEnum):
    DRAFT = "draft"
    """Resolved and estimated; nobody was asked."""
    RUNNING = "running"
    DONE = "done"
    """Nothing is left to ask; excluded and failed ones are counted."""
    STOPPED = "stopped"
    """A model was away for long, or our own work failed: ``start`` goes on with what is missing."""
    CANCELLED = "cancelled"
    """By a person; what was made stays."""
