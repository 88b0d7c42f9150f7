"""The image that everything else stands on: Debian's public one, or bootstrapped from Debian's packages."""

import os
import subprocess
import tempfile
from pathlib import Path

from sandbox_images.catalogue import RootImage
from sandbox_images.engine import BuildFailed, Engine

_REPOSITORY = "workstead/root"
# Clamps file times, so that the same packages give the same bytes.
_EPOCH = "1735689600"
_BOOTSTRAP_DEADLINE_S = 900
# What the public slim image leaves out as well.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*")


def candidates(root: RootImage) -> dict[str, str]:
    """Tag by origin. Both names say the origin: the two do not hold the same bytes."""
    return {
        f"registry {root.public}": f"{_REPOSITORY}:{root.suite}-registry",
        f"mmdebstrap {root.suite}": f"{_REPOSITORY}:{root.suite}-bootstrap",
    }


def existing(engine: Engine, root: RootImage) -> tuple[str, str] | None:
    """(origin, tag) of the root image that the engine has."""
    return next(((origin, tag) for origin, tag in candidates(root).items() if engine.image_id(tag)), None)


def ensure(engine: Engine, root: RootImage) -> tuple[str, str]:
    """(origin, tag) of the root image, made if it is missing. Raises BuildFailed."""
    found = existing(engine, root)
    if found:
        return found
    public, bootstrapped = candidates(root).items()
    if engine.pull(root.public):
        engine.tag(root.public, public[1])
        return public
    with tempfile.TemporaryDirectory(prefix="workstead-root-") as folder:
        archive = Path(folder) / "root.tar"
        _bootstrap(root.suite, archive)
        engine.import_root(archive, bootstrapped[1])
    return bootstrapped


def _bootstrap(suite: str, archive: Path) -> None:
    options = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT]
    options += ["--dpkgopt=path-include=/usr/share/doc/*/copyright", "--aptopt=Acquire::Languages none"]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates", *options, suite, str(archive)]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_BOOTSTRAP_DEADLINE_S,
            check=False,
        )
    except FileNotFoundError:
        raise BuildFailed("no registry answers and mmdebstrap is not installed: make engine") from None
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"mmdebstrap did not end within {_BOOTSTRAP_DEADLINE_S} s") from None
    if done.returncode:
        raise BuildFailed(f"mmdebstrap: {done.stderr[-4000:]}")
