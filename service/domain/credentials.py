"""Credentials: what a stored secret may be used for. Secrets themselves are the gateway's alone."""

from enum import StrEnum


class Purpose(StrEnum):
    """What a credential was brought for."""

    MODEL = "model"
    JUDGE = "judge"
    """Never serves an agent or a simulated client."""
    SERVICE = "service"
    REGISTRY = "registry"


class Use(StrEnum):
    """Who asks: the purpose of a model request."""

    AGENT = "agent"
    CLIENT = "client"
    JUDGE = "judge"
    CHECK = "check"
    SERVICE = "service"
    REGISTRY = "registry"


_SERVES = {
    Purpose.MODEL: frozenset({Use.AGENT, Use.CLIENT, Use.JUDGE, Use.CHECK}),
    Purpose.JUDGE: frozenset({Use.JUDGE, Use.CHECK}),
    Purpose.SERVICE: frozenset({Use.SERVICE}),
    Purpose.REGISTRY: frozenset({Use.REGISTRY}),
}


def may_serve(purpose: Purpose, use: Use) -> bool:
    return use in _SERVES[purpose]
