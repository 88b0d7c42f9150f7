"""The checker as one file that the room's Python runs: an archive of its modules under their own names."""

import io
import zipfile
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "checker"
_PREFIX = "service/evidence/integrity/checker"
_MAIN = b"""import sys
from service.evidence.integrity.checker.program import main
sys.exit(main(sys.argv[1]))
"""


@cache
def checker_bundle() -> bytes:
    """Return the archive; the same bytes for the same sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        parents = ("service", "service/evidence", "service/evidence/integrity", _PREFIX)
        for name in parents:
            archive.writestr(zipfile.ZipInfo(f"{name}/__init__.py"), b"")
        for path in sorted(_FOLDER.glob("[!_]*.py")):
            archive.writestr(zipfile.ZipInfo(f"{_PREFIX}/{path.name}"), path.read_bytes())
        archive.writestr(zipfile.ZipInfo("__main__.py"), _MAIN)
    return buffer.getvalue()
