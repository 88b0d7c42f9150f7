"""The agent's setting ``mcp_servers``: name → where the server is, and which of its tools are offered."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.domain.services import ServiceName
from service.domain.tasks import Strict

SETTING = "mcp_servers"
MOST = 8
Short = Annotated[str, Field(min_length=1, max_length=4096)]
ToolName = Annotated[str, Field(min_length=1, max_length=128)]


class McpServer(Strict):
    command: list[Short] = Field(default_factory=list[str], max_length=64)
    """A program inside the sandbox that speaks on standard input and output."""
    env: dict[Short, Short] = Field(default_factory=dict[str, str], max_length=64)
    """Further environment of ``command``."""
    service: ServiceName | None = None
    """In place of ``command``: a gateway service among the agent's ``services``, which speaks streamable HTTP."""
    path: Annotated[str, Field(pattern=r"^/?[A-Za-z0-9._~/-]{0,500}$")] = ""
    """Of the server's address, below the service."""
    allow: list[ToolName] | None = Field(default=None, max_length=256)
    """Names of tools that are offered; null: all."""
    deny: list[ToolName] = Field(default_factory=list[str], max_length=256)
    """Names of tools that are not offered; goes before ``allow``."""
    timeout_s: float = Field(default=120, gt=0, le=1800)
    """Most seconds of one call."""

    @model_validator(mode="after")
    def _is_in_one_place(self) -> "McpServer":
        if bool(self.command) == (self.service is not None):
            raise ValueError("either command or service is needed, not both")
        if self.service is not None and self.env:
            raise ValueError("env is for command only")
        return self

    def offers(self, tool: str) -> bool:
        return tool not in self.deny and (self.allow is None or tool in self.allow)


Servers = Annotated[
    dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")], McpServer], Field(max_length=MOST)
]
_ADAPTER: TypeAdapter[dict[str, McpServer]] = TypeAdapter(Servers)


def servers_of(settings: AgentSettings) -> Mapping[str, McpServer]:
    """Return the servers by name. Raises Invalid ``bad_settings``, ``service_not_granted``."""
    try:
        found = _ADAPTER.validate_python(settings.further.get(SETTING, {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join([SETTING, *(str(part) for part in first["loc"])])
        raise Invalid("bad_settings", f"settings.{where}: {first['msg']}", setting=where) from error
    for name, server in found.items():
        if server.service is not None and server.service not in settings.services:
            detail = f"settings.{SETTING}.{name}: settings.services does not name {server.service!r}"
            raise Invalid("service_not_granted", detail, service=server.service)
    return found
