"""SWE-ReX, a peer, on the same engine in the same run. Null where it cannot be set up (no package index).

Its packages are installed into ``.local/swe-rex`` for this bench only; its image is our ``base`` with them copied in.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.journeys.stack import Stack

VERSION = "1.4.0"
_ROOT = Path(__file__).parents[2] / ".local" / "swe-rex"
_IMAGE = f"workstead-peer/swe-rex:{VERSION}"
_PROBE = Path(__file__).with_name("peer_swerex_probe.py")
_DOCKERFILE = """ARG PARENT
FROM ${PARENT}
USER root
COPY site /opt/swe-rex
RUN printf '#!/bin/sh\\nPYTHONPATH=/opt/swe-rex exec python3 -m swerex.server "$@"\\n' > /usr/local/bin/swerex-remote \\
 && chmod 755 /usr/local/bin/swerex-remote && swerex-remote --help > /dev/null
"""


def start_to_first_command(times: int) -> list[float] | None:
    """Return seconds from the start of a deployment to the end of its first command."""
    return _probe("start", times)


def execs(times: int) -> list[float] | None:
    """Return seconds of one execute of ``/bin/true`` in a running deployment."""
    return _probe("exec", times)


def _probe(what: str, times: int) -> list[float] | None:
    if not _ready():
        return None
    env = {**os.environ, "PYTHONPATH": str(_ROOT / "site")}
    argv = [sys.executable, str(_PROBE), what, str(times), _IMAGE]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr[-2000:])
        return None
    return [float(x) for x in json.loads(done.stdout.splitlines()[-1])]


def _ready() -> bool:
    site = _ROOT / "site"
    try:
        if not (site / "swerex").is_dir():
            pip = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--target",
                str(site),
                f"swe-rex=={VERSION}",
                "aiohttp",
            ]
            subprocess.run(pip, check=True, timeout=300)
        _ROOT.mkdir(parents=True, exist_ok=True)
        (_ROOT / "Dockerfile").write_text(_DOCKERFILE)
        build = ["docker", "build", "-q", "-t", _IMAGE, "--build-arg", f"PARENT={Stack.image('base')}", str(_ROOT)]
        subprocess.run(build, check=True, timeout=300, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"SWE-ReX is not available: {error}\n")
        shutil.rmtree(site, ignore_errors=True)
        return False
    return True
