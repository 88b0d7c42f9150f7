"""Images with hostile metadata, made from the base image by the engine's own commit: nothing is built or pulled."""

import json
import re
import subprocess
import uuid
from collections.abc import Sequence


def docker(*argv: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["docker", *argv], input=stdin, capture_output=True, check=True, timeout=60)
    return done.stdout.decode().strip()


def hostile_image(base: str, changes: Sequence[str]) -> str:
    """Return the id of an image with ``changes`` (Dockerfile instructions) over ``base``."""
    name = f"hostile-{uuid.uuid4().hex[:12]}"
    docker("create", "--network", "none", "--name", name, base, "true")
    try:
        argv = [part for change in changes for part in ("--change", change)]
        return docker("commit", *argv, name)
    finally:
        docker("rm", "-f", name)


def built_image(base: str, instructions: Sequence[str]) -> str:
    """Return the id of an image built from Dockerfile instructions (``commit`` does not take all of them).

    It is like no other: the cache would give all sessions the same one, and whoever removes it would take it from the rest.
    """
    text = "\n".join([f"FROM {base}", *instructions, f"LABEL made={uuid.uuid4().hex}"])
    return docker("build", "-q", "--network", "none", "-", stdin=text.encode())


def image_with_files(base: str, script: str) -> str:
    """Return the id of an image in which root ran ``script``."""
    name = f"hostile-{uuid.uuid4().hex[:12]}"
    try:
        docker("run", "--network", "none", "-u", "0", "--name", name, "--entrypoint", "sh", base, "-c", script)
        return docker("commit", name)
    finally:
        docker("rm", "-f", name)


def remove_image(image: str) -> None:
    subprocess.run(["docker", "rmi", "-f", image], capture_output=True, check=False, timeout=60)


def anonymous_volumes() -> set[str]:
    """Return those that the engine named: ours have names of their own."""
    return {name for name in docker("volume", "ls", "-q").split() if re.fullmatch(r"[0-9a-f]{64}", name)}


def labels(container: str) -> dict[str, str]:
    return json.loads(docker("inspect", container, "--format", "{{json .Config.Labels}}"))
