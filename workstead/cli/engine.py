"""Questions to the Docker engine over its own HTTP interface; enough for ``doctor`` and for the demo's last look."""

import json
import os
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from workstead.errors import WorksteadError

DEFAULT_SOCKET = "/var/run/docker.sock"
DEPLOYMENT_LABEL = "org.workstead.deployment"


class EngineAway(WorksteadError):
    """The engine does not answer."""


class Engine:
    """A Docker engine, read only. ``url`` is unix://… or tcp://host:port; default: DOCKER_HOST, else the local socket."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or os.environ.get("DOCKER_HOST") or f"unix://{DEFAULT_SOCKET}"
        parts = urlsplit(self.url)
        self.socket = parts.path if parts.scheme == "unix" else None
        base = "http://engine" if self.socket else f"http://{parts.netloc}"
        self._client = httpx.Client(base_url=base, transport=httpx.HTTPTransport(uds=self.socket), timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str, **params: Any) -> Any:
        """Return the answer's JSON. Raises EngineAway."""
        if self.socket and not Path(self.socket).is_socket():
            raise EngineAway(f"no Docker engine listens at {self.url}")
        try:
            response = self._client.get(path, params=params)
            response.raise_for_status()
            return response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise EngineAway(f"the Docker engine at {self.url} does not answer: {error}") from error

    def of_deployment(self, deployment: str) -> list[str]:
        """Return what the engine has of a deployment's sandboxes, as ``kind name``; other deployments do not count."""
        mine = json.dumps({"label": [f"{DEPLOYMENT_LABEL}={deployment}"]})
        containers = self.get("/containers/json", all="1", filters=mine)
        volumes: list[Any] = self.get("/volumes", filters=mine).get("Volumes") or []
        return sorted([f"container {c['Id'][:12]}" for c in containers] + [f"volume {v['Name']}" for v in volumes])

    def images(self) -> dict[str, str]:
        """Return name → tag of the sandbox images built here."""
        found = self.get("/images/json", filters=json.dumps({"label": ["org.workstead.image"]}))
        return {i["Labels"]["org.workstead.image"]: (i.get("RepoTags") or [i["Id"][:19]])[0] for i in found}
