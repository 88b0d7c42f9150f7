"""Run one of the host's own programs (mkfs, losetup, mount …), with a deadline."""

import subprocess
from collections.abc import Sequence

from service.sandboxes.contract import EngineError

_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


def run_tool(argv: Sequence[str], *, timeout_s: float = 30) -> str:
    """Return what the program printed; raise EngineError if it is missing, fails or outlives ``timeout_s`` seconds."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=timeout_s, env=_ENV, check=False)
    except FileNotFoundError as error:
        raise EngineError("host_tool_missing", f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise EngineError("host_tool_timeout", f"{argv[0]}: no end within {timeout_s:g} s") from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip()[-500:]
        raise EngineError("host_tool_failed", f"{argv[0]}: exit {done.returncode}: {reason}")
    return done.stdout.decode(errors="replace")
