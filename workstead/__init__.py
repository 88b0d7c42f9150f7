"""Client of Workstead, the sandboxed agent-execution service."""

from workstead.aio import AsyncClient
from workstead.errors import Disconnected, Problem, ProtocolError, WorksteadError
from workstead.sync import Client

__all__ = ["AsyncClient", "Client", "Disconnected", "Problem", "ProtocolError", "WorksteadError"]
