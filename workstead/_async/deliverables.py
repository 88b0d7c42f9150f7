"""Deliverables made elsewhere: a folder of files for a run of an external agent, or to be graded with no run."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workstead._async.blobs import AsyncBlobs
from workstead._async.http import AsyncTransport
from workstead.models import Run
from workstead.task_dir import read_folder


class AsyncDeliverables:
    """``PUT /v1/runs/{id}/deliverable`` and ``POST /v1/gradings``."""

    def __init__(self, http: AsyncTransport, blobs: AsyncBlobs) -> None:
        self._http = http
        self._blobs = blobs

    async def upload(self, run_id: str, folder: Path) -> Run:
        """Deliver the files of ``folder`` for a run of an external agent. Raises InvalidInput, Conflict, Problem."""
        body = {"files": await self._bring(folder)}
        path = f"/v1/runs/{quote(run_id, safe='')}/deliverable"
        return Run.model_validate(await self._http.json("PUT", path, json=body))

    async def grade(
        self, task: str, folder: Path, *, agent: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Run:
        """Grade the files of ``folder`` as a deliverable of ``task``; return the run that keeps them."""
        files, sources = read_folder(folder)
        return await self.grade_files(task, files, sources, agent=agent, labels=labels)

    async def grade_files(
        self,
        task: str,
        files: Sequence[Mapping[str, Any]],
        sources: Mapping[str, Path],
        *,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Run:
        """Grade files (path and sha256 each, ``sources`` has digest → file) as a deliverable of ``task``.

        Calls with the same ``key`` grade once. Raises NotFound, Problem, OSError.
        """
        refs = [{"path": ref["path"], "sha256": ref["sha256"]} for ref in files]
        await self._upload(sources)
        body: dict[str, Any] = {"task": task, "files": refs, "labels": dict(labels or {})}
        if agent is not None:
            body["agent"] = agent
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return Run.model_validate(await self._http.json("POST", "/v1/gradings", json=body, headers=headers))

    async def _bring(self, folder: Path) -> list[dict[str, str]]:
        files, sources = read_folder(folder)
        await self._upload(sources)
        return files

    async def _upload(self, sources: Mapping[str, Path]) -> None:
        missing = await self._blobs.missing(sources)
        await self._blobs.upload_all({sha: sources[sha] for sha in missing})
