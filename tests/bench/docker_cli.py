"""Baselines: what the engine's own command line needs for the same thing."""

import subprocess
import time
from collections.abc import Sequence


def docker_run_first_byte(image: str, argv: Sequence[str], options: Sequence[str] = ()) -> float:
    """Return seconds from fork of ``docker run --rm`` to the first byte of the program's output."""
    started = time.perf_counter()
    command = ["docker", "run", "--rm", *options, image, *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        first = process.stdout.read(1)
        took = time.perf_counter() - started
        if not first:
            raise RuntimeError(f"docker run printed nothing: {process.stderr.read().decode(errors='replace')}")
        process.communicate(timeout=60)
    return took
