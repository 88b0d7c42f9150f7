"""``verify.py`` of an export: the parts of ``verify_program`` as one file that needs nothing of ours."""

import ast
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "verify_program"
PARTS = (
    "reading", "means", "chance", "general", "papers", "labor", "beside", "panel", "regressions", "forecasting", "jobs", "forecasts",
    "formulas", "comparing",
)  # fmt: skip
"""In the order in which they use one another."""
_OURS = "service."


@cache
def program() -> bytes:
    """Return the file. The parts' imports of one another are left out; their texts stay as they are."""
    return "\n\n".join(_alone((_FOLDER / f"{part}.py").read_text(encoding="utf-8")) for part in PARTS).encode()


def _alone(text: str) -> str:
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).rstrip() + "\n"
