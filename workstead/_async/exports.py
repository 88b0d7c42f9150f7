"""Exports: everything that a reader needs to check a report's figures, as one zip with a program that does so."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead.models import Operation

_PATH = "/v1/exports"


class AsyncExports:
    """``/v1/exports``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(
        self,
        evaluations: Sequence[str],
        *,
        profile: str = "internal",
        waivers: Sequence[str] = (),
        idempotency_key: str | None = None,
    ) -> Operation:
        """Have an export made; wait with ``client.operations.wait``, then ``download``.

        ``profile``: internal, reviewer or public; ``waivers``: findings of the leak scan that may pass, by name.
        """
        body = {"evaluation_ids": [*evaluations], "profile": profile, "waivers": [*waivers]}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Operation.model_validate(await self._http.json("POST", _PATH, json=body, headers=headers))

    async def download(self, operation_id: str, target: Path) -> int:
        """Write the zip to the new file ``target``; return its bytes. Raises NotFound, Problem, OSError."""
        return await download(self._http, f"{_PATH}/{quote(operation_id, safe='')}/archive.zip", target)
