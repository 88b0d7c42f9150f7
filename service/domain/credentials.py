"""Credentials: what a stored secret may be used for. Secrets themselves are the gateway's alone."""

from enum import StrEnum


class Purpose(StrEnum):
    """What a credential was brought for."""

    MODEL = "model"
    JUDGE = "judge"
    """Never serves an agent or a simulated client."""
    SERVICE = "service"


class Use(StrEnum):
    """Who asks: the purpose of a model request."""

    AGENT = "agent"
    CLIENT = "client"
    JUDGE = "judge"
    CHECK = "check"
    SERVICE = "service"


_SERVES = {
    Purpose.MODEL: frozenset({Use.AGENT, Use.CLIENT, Use.JUDGE, Use.CHECK}),
    Purpose.JUDGE: frozenset({Use.JUDGE, Use.CHECK}),
    Purpose.SERVICE: frozenset({Use.SERVICE}),
}


def may_serve(purpose: Purpose, use: Use) -> bool:
    return use in _SERVES[purpose]
