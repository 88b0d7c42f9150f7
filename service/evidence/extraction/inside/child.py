"""What is said of one file, in the process that reads it."""

import json
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

from service.evidence.extraction.inside.contract import Caps, Converter, Failed, Output
from service.evidence.extraction.inside.registry import reader_of
from service.evidence.extraction.inside.sharing import share
from service.evidence.integrity.checker.findings import MIB, Trouble

MEMORY = 1536 * MIB
"""Of the process and of each that it starts."""
CPU_S = 90
_RENAMED = {"too_large_to_check": "too_large"}


def extract(path: Path, kind: str, ext: str, note: str | None, caps: Caps, office: Converter | None) -> bytes:
    """Return what is said of a file: a line of JSON, and the pictures that it lists, one after the other."""
    out = Output(kind, ext, path.parent / "scratch", caps, office, time.monotonic() + caps.file_s)
    out.scratch.mkdir()
    if note:
        out.note(note)
    state, error, detail = _read(path, out)
    share(out.pieces, caps.file_chars)
    said: dict[str, Any] = {
        "kind": kind,
        "state": state,
        "error": error,
        "detail": detail,
        "pieces": [[p.kind, p.label, p.head, p.tail, p.missing] for p in out.pieces],
        "images": [[p.label, p.source, p.media_type, p.width, p.height, len(p.data)] for p in out.pictures],
        "notes": out.notes,
        "facts": out.facts,
        "left": [out.left.chars, out.left.rows, out.left.parts, out.left.images],
    }
    line = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"\n".join((line, b"".join(p.data for p in out.pictures)))


def _read(path: Path, out: Output) -> tuple[str, str | None, str | None]:
    """Return (state, error, detail)."""
    read = reader_of(out.kind)
    if read is None:
        return "listed", None, None
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, out.caps.file_s)
    try:
        read(path, out)
    except Failed as failed:
        return "failed", failed.error, _words(failed.detail)
    except Trouble as trouble:
        return "failed", _RENAMED.get(trouble.type, trouble.type), _words(trouble.detail)
    except MemoryError:
        return "failed", "bomb", f"its reader needs more than {MEMORY >> 20} MiB"
    except RecursionError:
        return "failed", "bomb", "nested too deep"
    except Exception as error:  # noqa: BLE001 - whatever a reader does with foreign bytes is a finding about them
        return "failed", "cannot_open", _words(f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ("extracted" if out.pieces or out.pictures or out.facts else "listed"), None, None


def _late(_: int, __: FrameType | None) -> None:
    raise Failed("timeout", "its reader did not end in time")


def _words(text: str) -> str:
    return text[:500]
