"""What the image tests ask of the engine beside building."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import docker

_DEADLINE_S = 120


@contextmanager
def client() -> Generator[Any]:
    opened: Any = docker.from_env(timeout=_DEADLINE_S)
    try:
        yield opened
    finally:
        opened.close()


def run_as_agent(image: str, script: str, memory: str = "512m") -> tuple[int, str]:
    """Run a shell script as a sandbox would: no network, read-only root, no capabilities. Returns (code, output)."""
    with client() as engine:
        container = engine.containers.create(
            image,
            ["sh", "-c", script],
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            tmpfs={"/tmp": "size=64m,mode=1777"},
            mem_limit=memory,
            pids_limit=128,
        )
        try:
            container.start()
            code = int(container.wait(timeout=_DEADLINE_S)["StatusCode"])
            return code, container.logs().decode(errors="replace")
        finally:
            container.remove(force=True)


def traces(image: str, needles: list[str]) -> list[str]:
    """Which of ``needles`` occur in any layer, in the history or in the configuration of an image."""
    with client() as engine:
        facts = json.dumps([engine.api.inspect_image(image), engine.api.history(image)])
        found = {needle for needle in needles if needle in facts}
        found |= _in_stream(engine.api.get_image(image), [needle.encode() for needle in needles])
    return sorted(found)


def _in_stream(chunks: Iterator[bytes], needles: list[bytes]) -> set[str]:
    """Search the saved image, which holds each layer uncompressed; needles may lie across two chunks."""
    keep = max(map(len, needles), default=1) - 1
    found: set[bytes] = set()
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        found |= {needle for needle in needles if needle in window}
        tail = window[-keep:] if keep else b""
    return {needle.decode() for needle in found}
