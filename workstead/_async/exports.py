"""Exports: everything that a reader needs to check a report's figures, as one zip with a program that does so."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
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
        names: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        embargo: Sequence[str] = (),
        kind: str | None = None,
        settings: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Operation:
        """Have an export made; wait with ``client.operations.wait``, then ``download``.

        ``profile``: internal, reviewer or public; ``waivers``: findings of the leak scan that may pass, by name; ``names``:
        further words that must not leave the house. Of ``public`` only: ``aliases`` (agent → what it is called) and
        ``embargo`` (agents that are left out). ``kind``, ``settings``: of the report in it.
        """
        body: dict[str, Any] = {"evaluation_ids": [*evaluations], "profile": profile, "waivers": [*waivers]}
        body |= {"names": [*names], "aliases": dict(aliases or {}), "embargo": [*embargo]}
        body |= {"kind": kind, "settings": dict(settings or {})}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Operation.model_validate(await self._http.json("POST", _PATH, json=body, headers=headers))

    async def download(self, operation_id: str, target: Path) -> int:
        """Write the zip to the new file ``target``; return its bytes. Raises NotFound, Problem, OSError."""
        return await download(self._http, f"{_PATH}/{quote(operation_id, safe='')}/archive.zip", target)
