"""Altered-work controls: deliverables made worse on purpose, to see whether graders notice."""

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead.models import Operation
from workstead.models_controls import Controls

_PATH = "/v1/controls"


class AsyncControls:
    """``/v1/controls``. ``wish``: kinds, filter or runs, weaker, plan, seed, facet, accepted_from."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, wish: Mapping[str, Any], *, idempotency_key: str | None = None) -> Operation:
        """Have controls made and graded; their figures are at ``get(operation.id)``. Raises Invalid, NotFound."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Operation.model_validate(await self._http.json("POST", _PATH, json=dict(wish), headers=headers))

    async def get(self, operation_id: str) -> Controls:
        """Return the figures as far as the gradings are."""
        return Controls.model_validate(await self._http.json("GET", f"{_PATH}/{quote(operation_id, safe='')}"))

    async def wait(self, operation_id: str) -> Controls:
        """Return the figures once all controls are made and graded; a judge that is away is waited for."""
        tried = 0
        while not (found := await self.get(operation_id)).done:
            await self._http.pause(tried)
            tried += 1
        return found
