"""How processes of ours ask a model: at the gateway's own side, with the token of all of them or with a run's."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from service.domain.models import ModelSpec
from service.models.messages import Reach
from service.models.sockets import NO_TLS


@dataclass(frozen=True, slots=True)
class OwnWay:
    """How our processes reach the gateway: its Unix socket, and the file with the token that it knows them by."""

    socket: Path
    token_file: Path
    """Made by the gateway; read when something is asked."""

    def token(self) -> str:
        """Blocks. Raises OSError."""
        return self.token_file.read_text().strip()

    def client(self, timeout_s: float) -> httpx.AsyncClient:
        """Return a client that reaches nothing but the gateway's socket; ``timeout_s`` bounds each wait."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.socket), verify=NO_TLS)
        return httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=timeout_s, trust_env=False)


def own_headers(project_id: str, purpose: str, model: str) -> dict[str, str]:
    """Return what the gateway wants to know beside the token of our own processes: for whom, what for, which model."""
    return {"x-workstead-project": project_id, "x-workstead-purpose": purpose, "x-workstead-model": model}


def reach_of(
    socket: str, spec: ModelSpec, token: str, *, chat: bool = False, headers: Mapping[str, str] | None = None
) -> Reach:
    return Reach(
        socket=socket,
        token=token,
        upstream_id=spec.upstream_id,
        dialect=spec.dialect,
        max_output_tokens=spec.max_output_tokens,
        reasoning=bool(spec.efforts),
        chat=chat,
        headers=dict(headers or {}),
    )
