"""Baselines: what the engine's own command line needs for the same thing."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from service.sandboxes import docker


def docker_run_first_byte(image: str, argv: Sequence[str], options: Sequence[str] = ()) -> float:
    """Return seconds from fork of ``docker run --rm`` to the first byte of the program's output."""
    started = time.perf_counter()
    command = ["docker", "run", "--rm", *options, image, *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.read(1)
        took = time.perf_counter() - started
        if not first:
            raise RuntimeError(f"docker run printed nothing: {process.stderr.read().decode(errors='replace')}")
        process.communicate(timeout=60)
    return took


def profile_options() -> list[str]:
    """Return our profile as flags of ``docker run`` (no launcher, no workspace volume)."""
    seccomp = Path(docker.__file__).with_name("seccomp.json")
    return [
        "--user=10001:10001", "--cap-drop=ALL", "--security-opt=no-new-privileges", f"--security-opt=seccomp={seccomp}",
        "--read-only", "--init", "--network=none", "--ipc=private", "--log-driver=none", "--pids-limit=512",
        "--memory=268435456", "--memory-swap=268435456", "--cpus=1", "--shm-size=64m", "--tmpfs=/tmp:size=64m",
        "--tmpfs=/run:size=16m", "--tmpfs=/var/tmp:size=16m", "--ulimit=core=0", "--ulimit=nofile=4096:16384",
        "--no-healthcheck", "--stop-signal=SIGKILL",
    ]  # fmt: skip
