"""Containers that are made to look into an image or to fill a volume, and are never started.

They carry the labels and the name of a sandbox, so that one left by a crash is found and removed like any other.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from service.domain.ids import new_id
from service.sandboxes.contract import SandboxGone
from service.sandboxes.docker.engine import CREATE_S, Engine
from service.sandboxes.docker.facts import DEPLOYMENT_LABEL, SANDBOX_LABEL


@asynccontextmanager
async def unstarted(
    engine: Engine,
    deployment: str,
    image_id: str,
    *,
    mounts: Sequence[dict[str, Any]] = (),
    deadline_s: float = CREATE_S,
) -> AsyncGenerator[str]:
    """Give the id of a container of ``image_id`` that is removed at the end. Raises EngineError, SandboxGone."""
    sandbox_id = new_id("sbx")
    body: dict[str, Any] = {
        "Image": image_id,
        "Entrypoint": ["/"],
        "Labels": {DEPLOYMENT_LABEL: deployment, SANDBOX_LABEL: sandbox_id},
        "HostConfig": {"NetworkMode": "none", "Mounts": list(mounts)},
    }
    container = await engine.create(body, f"{deployment}-{sandbox_id}", deadline_s=deadline_s)
    try:
        yield container
    finally:
        with suppress(SandboxGone):
            await engine.remove(container)
