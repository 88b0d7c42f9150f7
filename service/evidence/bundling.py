"""A program for a room as one file that its Python runs: an archive of modules under their own names."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def bundle(packages: Sequence[str], main: str) -> bytes:
    """Return an archive of these packages, which calls ``main`` (``module:function``) with its first argument.

    The same bytes for the same sources.
    """
    buffer = io.BytesIO()
    module, _, function = main.partition(":")
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in _with_parents(packages):
            archive.writestr(zipfile.ZipInfo(f"{name}/__init__.py"), b"")
        for package in packages:
            folder = package.replace(".", "/")
            for path in sorted((_ROOT / folder).glob("[!_]*.py")):
                archive.writestr(zipfile.ZipInfo(f"{folder}/{path.name}"), path.read_bytes())
        call = f"import sys\nfrom {module} import {function}\nsys.exit({function}(sys.argv[1]))\n"
        archive.writestr(zipfile.ZipInfo("__main__.py"), call.encode())
    return buffer.getvalue()


def _with_parents(packages: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for package in packages:
        names = package.split(".")
        found.update(dict.fromkeys("/".join(names[: n + 1]) for n in range(len(names))))
    return list(found)
