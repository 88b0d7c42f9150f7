"""Everything that a run left, as one zip: for bug reports, and for looking at it where there is no service."""

import json
import tempfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of, pages
from workstead.errors import Conflict, Forbidden, Gone, NotFound

NOT_THERE = (Conflict, Forbidden, Gone, NotFound)
EVENTS_AT_ONCE = 500


async def bundle(http: AsyncTransport, run_id: str, target: Path) -> list[str]:
    """Write the zip to ``target``, which must not exist; return the names in it.

    The service redacts what is secret before it keeps it; nothing hidden of the task is asked for. What this token may
    not see, or what the run does not have (yet), is named in ``missing.txt``. Raises NotFound, Problem, Disconnected, OSError.
    """
    with target.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        return await _Bundling(http, f"/v1/runs/{quote(run_id, safe='')}", archive).write()


class _Bundling:
    def __init__(self, http: AsyncTransport, path: str, archive: zipfile.ZipFile) -> None:
        self._http = http
        self._path = path
        self._archive = archive
        self._missing: list[str] = []

    async def write(self) -> list[str]:
        run = await self._http.json("GET", self._path)
        self._add("run.json", run)
        await self._one("agent.json", f"/v1/agents/{quote(str(run['agent']['id']), safe='')}")
        for name in ("integrity", "trajectory"):
            await self._one(f"{name}.json", f"{self._path}/{name}")
        await self._list("gradings.json", f"{self._path}/gradings")
        await self._all("artifacts.json", f"{self._path}/artifacts")
        await self._events()
        await self._requests()
        await self._attempts()
        if self._missing:
            self._archive.writestr("missing.txt", "\n".join(self._missing) + "\n")
        return self._archive.namelist()

    async def _events(self) -> None:
        with self._archive.open("events.jsonl", "w", force_zip64=True) as file:
            async for event in self._stored():
                file.write(json.dumps(event).encode() + b"\n")

    async def _stored(self) -> AsyncIterator[dict[str, Any]]:
        after = 0
        while True:
            params = {"after": after, "limit": EVENTS_AT_ONCE}
            found = items_of(await self._http.json("GET", f"{self._path}/events", params=params), self._path)
            for event in found:
                yield event
            if len(found) < EVENTS_AT_ONCE:
                return
            after = int(found[-1]["seq"])

    async def _requests(self) -> None:
        for kind in ("service-calls", "model-requests"):
            folder = kind.replace("-", "_")
            for one in await self._all(f"{folder}.json", f"{self._path}/{kind}"):
                for side in ("request", "response"):
                    if one.get(f"has_{side}_body"):
                        await self._file(f"{folder}/{one['n']}.{side}", f"{self._path}/{kind}/{one['n']}/body/{side}")

    async def _attempts(self) -> None:
        attempts = await self._list("attempts.json", f"{self._path}/attempts")
        for attempt in attempts:
            logs: dict[str, Any] = attempt.get("logs") or {}
            for stream in logs:
                name = f"logs/{attempt['n']}.{stream}"
                await self._file(name, f"{self._path}/attempts/{attempt['n']}/logs/{quote(stream, safe='')}")

    async def _one(self, name: str, path: str) -> None:
        try:
            self._add(name, await self._http.json("GET", path))
        except NOT_THERE as error:
            self._missing.append(f"{name}: {error}")

    async def _list(self, name: str, path: str) -> list[dict[str, Any]]:
        found = items_of(await self._http.json("GET", path), path)
        self._add(name, found)
        return found

    async def _all(self, name: str, path: str) -> list[dict[str, Any]]:
        try:
            found = [item async for item in pages(self._http, path, {}, None) if item]
        except NOT_THERE as error:
            self._missing.append(f"{name}: {error}")
            return []
        self._add(name, found)
        return found

    async def _file(self, name: str, path: str) -> None:
        with tempfile.TemporaryDirectory(prefix="workstead-bundle-") as folder:
            source = Path(folder) / "file"
            try:
                await download(self._http, path, source)
            except NOT_THERE as error:
                self._missing.append(f"{name}: {error}")
            else:
                self._archive.write(source, name)

    def _add(self, name: str, body: Any) -> None:
        self._archive.writestr(name, json.dumps(body, indent=1))
