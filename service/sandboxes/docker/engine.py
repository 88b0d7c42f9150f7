"""The Docker engine as the rest of this package sees it: few calls, each with a deadline, errors of the contract.

Only low-level calls are used: the high-level client's ``containers.list()`` inspects every container, so that one
hung container would hang the reaper.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar, cast

import docker.errors
import requests.exceptions
from docker.api.client import APIClient

from service.sandboxes.contract import EngineError, SandboxGone
from service.sandboxes.docker.calls import MAX_THREADS, CallPool

DEFAULT_URL = "unix:///var/run/docker.sock"
CREATE_S, START_S, INSPECT_S, KILL_S, REMOVE_S, LIST_S = 60.0, 60.0, 10.0, 20.0, 60.0, 20.0
FILL_S = 600.0
"""Creating the container that fills a kit volume copies the whole tree."""
LOAD_S = 1800.0
"""Unpacking the layers of the largest image."""
SOCKET_TIMEOUT_S = 90
"""Silence after which a blocked thread gives its socket up, whatever its caller's deadline was."""

Json = dict[str, Any]
T = TypeVar("T")


class _Api(Protocol):
    """The part of docker-py's untyped client that is used here."""

    base_url: str
    api_version: str

    def version(self) -> Json: ...
    def info(self) -> Json: ...
    def create_container_from_config(self, config: Json, name: str | None = None) -> Json: ...
    def start(self, container: str) -> None: ...
    def inspect_container(self, container: str) -> Json: ...
    def kill(self, container: str) -> None: ...
    def wait(self, container: str, timeout: int | None = None) -> Json: ...
    def pause(self, container: str) -> None: ...
    def unpause(self, container: str) -> None: ...
    def remove_container(self, container: str, v: bool = False, force: bool = False) -> None: ...
    def containers(self, *, all: bool, filters: Json) -> list[Json]: ...
    def create_volume(self, *, name: str, driver: str, driver_opts: Mapping[str, str], labels: Json) -> Json: ...
    def remove_volume(self, name: str, force: bool = False) -> None: ...
    def inspect_volume(self, name: str) -> Json: ...
    def volumes(self, filters: Json) -> Json: ...
    def images(self, *, filters: Json) -> list[Json]: ...
    def inspect_image(self, image: str) -> Json: ...
    def load_image(self, data: Iterable[bytes]) -> Iterable[Json]: ...
    def remove_image(self, image: str) -> Any: ...
    def head(self, url: str, *, params: Json, timeout: float) -> Any: ...
    def close(self) -> None: ...


class Engine:
    """One engine. Methods raise EngineError; those on a named thing raise SandboxGone where the engine has no such."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or DEFAULT_URL
        self.pool = CallPool()
        self._client: _Api | None = None

    async def info(self) -> Json:
        return await self._call("info", INSPECT_S, lambda api: api.info())

    async def version(self) -> Json:
        return await self._call("version", INSPECT_S, lambda api: api.version())

    async def create(self, body: Json, name: str, *, deadline_s: float = CREATE_S) -> str:
        """Create a container from an Engine API body; return its id."""
        made = await self._call("create", deadline_s, lambda api: api.create_container_from_config(body, name=name))
        return str(made["Id"])

    async def start(self, container: str) -> None:
        await self._call("start", START_S, lambda api: api.start(container))

    async def inspect(self, container: str) -> Json:
        return await self._call("inspect", INSPECT_S, lambda api: api.inspect_container(container))

    async def kill(self, container: str) -> None:
        """Send SIGKILL to everything inside and wait until the engine says that it is dead (KILL_S each at most)."""
        try:
            await self._call("kill", KILL_S, lambda api: api.kill(container))
        except EngineError as error:
            if error.type != "engine_conflict":  # 409: not running (any more)
                raise
        await self._call("wait", KILL_S + 1, lambda api: api.wait(container, timeout=int(KILL_S)))

    async def pause(self, container: str) -> None:
        await self._call("pause", INSPECT_S, lambda api: api.pause(container))

    async def unpause(self, container: str) -> None:
        await self._call("unpause", INSPECT_S, lambda api: api.unpause(container))

    async def remove(self, container: str) -> None:
        """Remove a container with its anonymous volumes, dead or alive."""
        await self._call("remove", REMOVE_S, lambda api: api.remove_container(container, v=True, force=True))

    async def containers(self, label: str) -> list[Json]:
        filters: Json = {"label": [label]}
        return await self._call("list", LIST_S, lambda api: api.containers(all=True, filters=filters))

    async def create_volume(self, name: str, options: Mapping[str, str], labels: Mapping[str, str]) -> None:
        def work(api: _Api) -> Json:
            return api.create_volume(name=name, driver="local", driver_opts=options, labels=dict(labels))

        await self._call("volume create", INSPECT_S, work)

    async def remove_volume(self, name: str) -> None:
        await self._call("volume remove", REMOVE_S, lambda api: api.remove_volume(name))

    async def inspect_volume(self, name: str) -> Json:
        return await self._call("volume inspect", INSPECT_S, lambda api: api.inspect_volume(name))

    async def volumes(self, label: str) -> list[Json]:
        filters: Json = {"label": [label]}
        found = await self._call("volume list", LIST_S, lambda api: api.volumes(filters=filters))
        return cast("list[Json]", found.get("Volumes") or [])

    async def images(self, label: str) -> list[Json]:
        filters: Json = {"label": [label]}
        return await self._call("image list", LIST_S, lambda api: api.images(filters=filters))

    async def named_images(self, repository: str) -> list[Json]:
        filters: Json = {"reference": [repository]}
        return await self._call("image list", LIST_S, lambda api: api.images(filters=filters))

    async def load_image(self, archive: Iterable[bytes]) -> None:
        """Give the engine an archive. Raises EngineError, also for one that it does not take."""

        def work(api: _Api) -> None:
            for line in api.load_image(archive):
                if line.get("error"):
                    raise docker.errors.DockerException(str(line["error"])[:500])

        await self._call("image load", LOAD_S, work)

    async def remove_image(self, image: str) -> None:
        await self._call("image remove", REMOVE_S, lambda api: api.remove_image(image))

    async def inspect_image(self, image: str) -> Json:
        return await self._call("image inspect", INSPECT_S, lambda api: api.inspect_image(image))

    async def stat_path(self, container: str, path: str) -> Json | None:
        """Return the engine's stat of a path of a container's image (never followed), or null if it is not there."""

        def work(api: _Api) -> Json | None:
            url = f"{api.base_url}/v{api.api_version}/containers/{container}/archive"
            answer = api.head(url, params={"path": path}, timeout=INSPECT_S)
            header = answer.headers.get("X-Docker-Container-Path-Stat")
            return json.loads(base64.b64decode(header)) if answer.status_code == 200 and header else None

        return await self._call("stat", INSPECT_S, work)

    def close(self) -> None:
        self.pool.close()
        if self._client is not None:
            self._client.close()

    async def _call(self, what: str, deadline_s: float, work: Callable[[_Api], T]) -> T:
        return await self.pool.run(what, deadline_s, lambda: _translated(what, lambda: work(self._api())))

    def _api(self) -> _Api:
        if self._client is None:
            # Connecting asks the engine for its version: this must happen in the pool, under the call's deadline.
            made = APIClient(self.url, version="auto", timeout=SOCKET_TIMEOUT_S, num_pools=MAX_THREADS)
            self._client = cast("_Api", cast("object", made))
        return self._client


def _translated(what: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except docker.errors.NotFound as error:
        raise SandboxGone("engine_not_found", f"{what}: {error.explanation}") from error
    except docker.errors.APIError as error:
        kind = "engine_conflict" if error.status_code == 409 else "engine_error"
        raise EngineError(kind, f"{what}: {error.explanation}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
        raise EngineError("engine_unreachable", f"{what}: {type(error).__name__}: {error}") from error
