"""What runs are made of: tasks, scaffolds, agents."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workstead._async.blobs import AsyncBlobs, create_with_blobs
from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models import Agent, ClientFacts, ConformanceResult, Operation, Scaffold, Task
from workstead.scaffold_file import read_scaffold_file
from workstead.task_dir import Bundle, read_task_dir


class AsyncTasks:
    """``/v1/tasks``: immutable, known by the digest of their manifest; creating one again finds it."""

    def __init__(self, http: AsyncTransport, blobs: AsyncBlobs) -> None:
        self._http, self._blobs = http, blobs

    async def create(self, source: Path | str | Bundle) -> Task:
        """Create a task from a directory or a bundle; uploads what the server misses. Raises InvalidInput, Problem."""
        bundle = source if isinstance(source, Bundle) else read_task_dir(Path(source))

        async def create() -> Any:
            return await self._http.json("POST", "/v1/tasks", json=bundle.manifest)

        return Task.model_validate(await create_with_blobs(self._blobs, bundle.files, create))

    async def get(self, task_id: str) -> Task:
        return Task.model_validate(await self._http.json("GET", f"/v1/tasks/{quote(task_id, safe='')}"))

    async def list(self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None) -> AsyncIterator[Task]:
        """Yield tasks; ``filters`` as the API has them (name, facet.<name>, label.<name>, …)."""
        async for item in pages(self._http, "/v1/tasks", filters or {}, limit):
            yield Task.model_validate(item)

    async def make_client_facts(
        self, task_id: str, *, model: str | None = None, template: str | None = None, seed: int = 1
    ) -> Operation:
        """Have a model write down, once, what the task's simulated client knows; wait with ``client.operations.wait``.

        ``model``: a catalogue name; None: the one that plays the client. Raises Conflict (others exist), Invalid.
        """
        body = {"model": model, "seed": seed} | ({} if template is None else {"template": template})
        return Operation.model_validate(await self._http.json("POST", _facts(task_id), json=body))

    async def client_facts(self, task_id: str) -> ClientFacts:
        """Return what the task's simulated client knows. Needs ``hidden:read``. Raises NotFound."""
        return ClientFacts.model_validate(await self._http.json("GET", _facts(task_id)))


class AsyncScaffolds:
    """``/v1/scaffolds``: ``name@version``, immutable."""

    def __init__(self, http: AsyncTransport, blobs: AsyncBlobs) -> None:
        self._http, self._blobs = http, blobs

    async def register(self, source: Path | str | Bundle) -> Scaffold:
        """Register a manifest file or a bundle; the same one again finds it. Raises InvalidInput, Conflict, Problem."""
        bundle = source if isinstance(source, Bundle) else read_scaffold_file(Path(source))

        async def register() -> Any:
            return await self._http.json("POST", "/v1/scaffolds", json=bundle.manifest)

        return Scaffold.model_validate(await create_with_blobs(self._blobs, bundle.files, register))

    async def get(self, scaffold: str) -> Scaffold:
        """Return a scaffold by its id or its ``name@version``."""
        return Scaffold.model_validate(await self._http.json("GET", f"/v1/scaffolds/{quote(scaffold, safe='@')}"))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Scaffold]:
        async for item in pages(self._http, "/v1/scaffolds", filters or {}, limit):
            yield Scaffold.model_validate(item)

    async def shipped(self) -> Sequence[dict[str, Any]]:
        """Return the manifests of the scaffolds that come with the service; agents name them ``name@version``."""
        found: dict[str, Any] = await self._http.json("GET", "/v1/scaffold-catalogue")
        return [dict(manifest) for manifest in found["data"]]

    async def check_conformance(self, scaffold: str, *, cases: Sequence[str] = (), quick: bool = False) -> Operation:
        """Try a scaffold out against a scripted provider; wait with ``client.operations.wait``. Raises Invalid."""
        body = {"cases": list(cases), "quick": quick}
        return Operation.model_validate(await self._http.json("POST", _conformance(scaffold), json=body))

    async def conformance(self, scaffold: str) -> Sequence[ConformanceResult]:
        """Return the newest result of each case that was ever tried."""
        found: dict[str, Any] = await self._http.json("GET", _conformance(scaffold))
        return [ConformanceResult.model_validate(item) for item in found["data"]]


class AsyncAgents:
    """``/v1/agents``: scaffold@version + model + settings."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(
        self,
        scaffold: str,
        *,
        model: str | None = None,
        settings: dict[str, Any] | None = None,
        label: str | None = None,
    ) -> Agent:
        """Create an agent, or find the one with this digest. Raises NotFound (scaffold), Conflict (label), Problem."""
        body = {"scaffold": scaffold, "model": model, "settings": settings or {}, "label": label}
        return Agent.model_validate(await self._http.json("POST", "/v1/agents", json=body))

    async def get(self, agent_id: str) -> Agent:
        return Agent.model_validate(await self._http.json("GET", f"/v1/agents/{quote(agent_id, safe='')}"))

    async def list(self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None) -> AsyncIterator[Agent]:
        async for item in pages(self._http, "/v1/agents", filters or {}, limit):
            yield Agent.model_validate(item)


def _conformance(scaffold: str) -> str:
    return f"/v1/scaffolds/{quote(scaffold, safe='@')}/conformance"


def _facts(task_id: str) -> str:
    return f"/v1/tasks/{quote(task_id, safe='')}/client-facts"
