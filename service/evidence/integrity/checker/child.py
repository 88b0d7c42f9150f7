"""What is said of one file, in the process that reads it."""

from pathlib import Path
from typing import Any

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble
from service.evidence.integrity.checker.readers import reader_of
from service.evidence.integrity.checker.sniff import HEAD_BYTES, TAIL_BYTES, judged, sniff

MEMORY = 1024 * MIB
"""Of the process."""
MAX_PROBLEMS, MAX_DETAIL = 8, 300
Result = dict[str, Any]


def sniffed(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        return sniff(head, file.read())


def examine(path: Path, ext: str) -> Result:
    """Return what is to be said of a file."""
    kind = sniffed(path)
    as_kind, mismatch = judged(ext, kind)
    problems = [("type_mismatch", f"the name says {ext}, the content is {kind}")] if mismatch else []
    read = reader_of(as_kind)
    if as_kind is None or read is None:
        return _result(kind, False if mismatch else None, problems, Seen())
    try:
        seen = read(path, as_kind)
    except Trouble as trouble:
        opens = None if trouble.type == "too_large_to_check" else False
        return _result(kind, opens, [*problems, (trouble.type, trouble.detail)], Seen())
    except MemoryError:
        return _result(kind, False, [*problems, ("timeout", f"its reader needs more than {MEMORY >> 20} MiB")], Seen())
    except RecursionError:
        return _result(kind, False, [*problems, ("bomb", "nested too deep")], Seen())
    except Exception as error:  # noqa: BLE001 - whatever a reader does with foreign bytes is a finding about them
        words = f"{type(error).__name__}: {error}"
        return _result(kind, False, [*problems, ("cannot_open", words)], Seen())
    return _result(kind, True, [*problems, *seen.problems], seen)


def _result(kind: str | None, opens: bool | None, problems: list[tuple[str, str]], seen: Seen) -> Result:
    cut = [[name, detail[:MAX_DETAIL]] for name, detail in problems[:MAX_PROBLEMS]]
    return {"sniffed": kind, "opens": opens, "problems": cut, "facts": seen.facts}
