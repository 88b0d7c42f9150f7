"""Puts the launcher's files where the container sees them."""

import os
import py_compile
import tempfile
from functools import lru_cache
from importlib.util import cache_from_source
from pathlib import Path

SOURCE = Path(__file__).with_name("launcher")


def install_launcher(control_dir: Path) -> None:
    """Copy ``program.py`` and its modules to ``control_dir`` (0755, files 0644); what is there already stays.

    Compiled modules go with them: a sandbox whose Python has our minor version starts some milliseconds sooner,
    any other ignores them. Raises OSError.
    """
    control_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
    control_dir.chmod(0o755)
    for source in sorted(SOURCE.glob("*.py")):
        target = control_dir / source.name
        if source.stem == "__init__" or target.exists():
            continue
        _place(target, source.read_bytes())
        if source.stem.startswith("launcher_"):
            _compile(target)


def _place(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".install-")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), 0o644)
    Path(temporary).replace(target)


def _compile(source: Path) -> None:
    # Optimisation level by hand: the name must be the one that a plain interpreter of this version looks for.
    target = Path(cache_from_source(str(source), optimization=""))
    target.parent.mkdir(mode=0o755, exist_ok=True)
    target.parent.chmod(0o755)
    _place(target, _byte_code(source.name))


@lru_cache(maxsize=64)
def _byte_code(name: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="workstead-launcher-") as folder:
        target = f"{folder}/{name}c"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        source = str(SOURCE / name)
        py_compile.compile(source, target, dfile=name, doraise=True, optimize=0, invalidation_mode=mode)
        return Path(target).read_bytes()
