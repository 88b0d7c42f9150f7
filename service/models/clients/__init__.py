"""Clients of our own loops: thin adapters over the official SDKs, pointed at the gateway's Unix socket.

The SDKs take the better part of a second to import: each is imported when it is first used, in the process that uses it.
"""

from importlib import import_module

from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.models.clients.persistent import Persistent
from service.models.messages import ModelClient, Reach

_MODULES = {
    "anthropic": "service.models.clients.anthropic",
    "openai": "service.models.clients.openai_responses",
    "openai_chat": "service.models.clients.openai_chat",
    "gemini": "service.models.clients.gemini",
}


def client_for(reach: Reach) -> ModelClient:
    """Return a client of the model's dialect. Raises Invalid ``dialect_without_client``."""
    check_dialect(reach.dialect)
    name = "openai_chat" if reach.dialect == "openai" and reach.chat else str(reach.dialect)
    make = import_module(_MODULES[name]).connect
    return Persistent(make(reach))


def check_dialect(dialect: Dialect) -> None:
    """Raises Invalid ``dialect_without_client`` for a model that no client of ours can ask."""
    if str(dialect) not in _MODULES:
        raise Invalid("dialect_without_client", f"our own loops do not speak {dialect!s}", dialects=sorted(_MODULES))
