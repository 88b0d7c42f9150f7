"""Deliverables made elsewhere: a folder of files for a run of an external agent, or to be graded with no run."""

import uuid
from collections.abc import Mapping
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
        body: dict[str, Any] = {"task": task, "files": await self._bring(folder), "labels": dict(labels or {})}
        if agent is not None:
            body["agent"] = agent
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        return Run.model_validate(await self._http.json("POST", "/v1/gradings", json=body, headers=headers))

    async def _bring(self, folder: Path) -> list[dict[str, str]]:
        files, sources = read_folder(folder)
        missing = await self._blobs.missing(sources)
        await self._blobs.upload_all({sha: sources[sha] for sha in missing})
        return files
