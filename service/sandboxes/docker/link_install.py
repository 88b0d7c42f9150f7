"""Puts the launcher's files where the container sees them."""

import hashlib
import os
import py_compile
import shutil
import sys
import tempfile
from functools import lru_cache
from importlib.util import cache_from_source
from pathlib import Path

SOURCE = Path(__file__).with_name("launcher")


def install_launcher(control_dir: Path, shared: Path | None = None) -> None:
    """Copy ``program.py`` and its modules to ``control_dir`` (0755, files 0644); what is there already stays.

    Compiled modules go with them: a sandbox whose Python has our minor version starts some milliseconds sooner,
    any other ignores them. ``shared``: a folder on the same file system that keeps one copy, of which the others are
    hard links (a sandbox sees them through a read-only mount). Raises OSError.
    """
    if shared is not None and not control_dir.exists():
        _link_all(_prepared(shared), control_dir)
    else:
        _copy_all(control_dir)


def _prepared(shared: Path) -> Path:
    """Return the folder of one copy of these very files, made by whoever comes first."""
    folder = shared / _version()
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(dir=shared, prefix=".draft-"))
        _copy_all(draft / "files")
        try:
            (draft / "files").rename(folder)
        except OSError:  # another process was quicker
            if not folder.exists():
                raise
        shutil.rmtree(draft)
    return folder


@lru_cache(maxsize=1)
def _version() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for source in sorted(SOURCE.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _link_all(source: Path, target: Path) -> None:
    target.mkdir(mode=0o755)
    target.chmod(0o755)
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            _link_all(Path(entry.path), target / entry.name)
        else:
            os.link(entry.path, target / entry.name)


def _copy_all(control_dir: Path) -> None:
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
