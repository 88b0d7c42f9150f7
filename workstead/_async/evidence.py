"""What runs' deliverables say, as text and pictures."""

import uuid
from pathlib import Path
from urllib.parse import quote

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead.models_evidence import Evidence


class AsyncEvidence:
    """``/v1/runs/{id}/evidence``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def get(self, run_id: str, file: str | None = None) -> Evidence:
        """Return the document of a run's deliverable, or of it one file by its path; ``state`` says whether it is there.

        Raises NotFound.
        """
        params = {} if file is None else {"file": file}
        return Evidence.model_validate(await self._http.json("GET", _path(run_id), params=params))

    async def make(self, run_id: str, *, idempotency_key: str | None = None) -> Evidence:
        """Have the document made if it is not there. Raises Conflict where nothing was sealed."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Evidence.model_validate(await self._http.json("POST", _path(run_id), headers=headers))

    async def wait(self, run_id: str) -> Evidence:
        """Return the document once it is made or cannot be made."""
        tried = 0
        while (found := await self.get(run_id)).state == "pending":
            await self._http.pause(tried)
            tried += 1
        return found

    async def image(self, run_id: str, sha256: str, target: Path) -> int:
        """Write one picture of the document to the new file ``target``; return its bytes. Raises NotFound, OSError."""
        return await download(self._http, f"{_path(run_id)}/images/{quote(sha256, safe='')}", target)


def _path(run_id: str) -> str:
    return f"/v1/runs/{quote(run_id, safe='')}/evidence"
