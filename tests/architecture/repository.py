"""What the repository holds: the files that would be committed, and their syntax trees."""

import ast
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON_ROOTS = ("service", "workstead", "tests", "migrations", "tools", "sandbox_images", "demo")
_CACHES = {"__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache", "node_modules"}
_NOT_OURS = {".git", ".venv", ".local", "build", *_CACHES}


@lru_cache(maxsize=1)
def files() -> tuple[Path, ...]:
    """Every file that is tracked or would be, relative to the root."""
    names = _known_to_git()
    if names is not None:
        return tuple(path for path in names if (ROOT / path).is_file())
    # A copy of the tree without its history, as `make mutants` makes one, or a machine without git.
    found = (path.relative_to(ROOT) for path in sorted(ROOT.rglob("*")) if path.is_file())
    return tuple(p for p in found if not _NOT_OURS & set(p.parts) and not any(s.endswith(".egg-info") for s in p.parts))


def _known_to_git() -> list[Path] | None:
    if shutil.which("git") is None:
        return None
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    return None if listing.returncode else [Path(name.decode()) for name in listing.stdout.split(b"\0") if name]


def python_files() -> list[Path]:
    return [path for path in files() if path.suffix == ".py" and path.parts[0] in PYTHON_ROOTS]


@lru_cache(maxsize=4096)
def text(path: Path) -> str | None:
    """The text of a file, or None if it is not text."""
    try:
        return (ROOT / path).read_text()
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=4096)
def syntax(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), str(path))
