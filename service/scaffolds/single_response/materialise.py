"""Builds documents, tables and pictures from text, in the sandbox, by a program of ours (``inside.py``)."""

import json
from functools import cache
from pathlib import Path, PurePosixPath

from service.sandboxes.contract import ToolFailed
from service.scaffolds.loops import LoopShell

BUILT = frozenset({".docx", ".xlsx", ".pdf", ".png"})
TIMEOUT_S = 180.0


def wanted(path: str) -> bool:
    """Tell whether the file's name asks for something that is not text."""
    return PurePosixPath(path).suffix.lower() in BUILT


def is_already(path: str, text: str) -> bool:
    """Tell whether the model wrote the format itself (a PDF can be text)."""
    return PurePosixPath(path).suffix.lower() == ".pdf" and text.startswith("%PDF-")


@cache
def _program() -> str:
    return (Path(__file__).parent / "inside.py").read_text(encoding="utf-8")


async def build(shell: LoopShell, path: str, text: bytes, call_id: str) -> str:
    """Build ``output/path`` from ``text``; return ``built``, or ``text`` where that failed and the source stands there.

    Raises ToolFailed, LauncherLost.
    """
    request = json.dumps({"path": path, "text": text.decode(errors="replace")}).encode()
    try:
        done = await shell.exec(
            ["python3", "-I", "-c", _program()], call_id=call_id, stdin=request, timeout_s=TIMEOUT_S, limit_bytes=65536
        )
    except ToolFailed as error:
        if error.type != "no_such_program":
            raise
    else:
        if done.code == 0 and done.stdout.strip() == b"built":
            return "built"
    # Beside the name that was asked for: nobody shall take text for a document.
    await shell.write_file(f"output/{path}.txt", text)
    return "text"
