"""The part of YAML that ``task.yaml`` uses: top-level keys with a scalar, a block of text or a list of scalars.

Everything else is an error that names its line, never a guess. Values stay texts, as they are written.
"""

import re
from collections.abc import Collection

_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(?:[ \t]+(.*))?\Z")
_BLOCK = re.compile(r"([|>])([+-]?)\s*(?:#.*)?\Z")
Value = str | list[str]


def read_flat(text: str, wanted: Collection[str]) -> dict[str, Value]:
    """Return the wanted keys that are there; what belongs to other keys is not looked at. Raises ValueError."""
    lines = text.split("\n")
    found: dict[str, Value] = {}
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r")
        at += 1
        if not line.strip() or line.startswith(("#", "---")):
            continue
        match = _KEY.match(line)
        if match is None:
            raise ValueError(f"line {at} is no `key: value`")
        end = _end(lines, at)
        if match[1] in wanted:
            if match[1] in found:
                raise ValueError(f"line {at}: {match[1]} is there twice")
            found[match[1]] = _value((match[2] or "").strip(), [part.rstrip("\r") for part in lines[at:end]], at)
        at = end
    return found


def _end(lines: list[str], at: int) -> int:
    """Return where the next top-level key begins."""
    while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t-#"):
        at += 1
    return at


def _value(first: str, below: list[str], line: int) -> Value:
    if block := _BLOCK.match(first):
        return _text(below, folded=block[1] == ">", keep=block[2])
    rest = [part.strip() for part in below if part.strip() and not part.strip().startswith("#")]
    if first.startswith("[") and first.endswith("]") and not rest:
        return [_scalar(part.strip(), line) for part in first[1:-1].split(",") if part.strip()]
    if not first and rest and all(part.startswith("- ") for part in rest):
        return [_scalar(part[2:].strip(), line) for part in rest]
    if rest:
        raise ValueError(f"line {line + 1}: neither a text nor a list of texts")
    return _scalar(first, line)


def _scalar(text: str, line: int) -> str:
    if text[:1] in ("'", '"'):
        if len(text) < 2 or text[-1] != text[0]:
            raise ValueError(f"line {line}: a quoted text that does not end on its line")
        inner = text[1:-1]
        return inner.replace("''", "'") if text[0] == "'" else _unescaped(inner, line)
    if text[:1] in ("&", "*", "!", "{", "[", "|", ">", "%", "@", "`"):
        raise ValueError(f"line {line}: not one of the forms that are read")
    return re.sub(r"\s+#.*\Z", "", text)


def _unescaped(text: str, line: int) -> str:
    known = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}

    def one(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ValueError(f"line {line}: an escape that is not read")
        return known[match[1]]

    return re.sub(r"\\(.)", one, text)


def _text(below: list[str], *, folded: bool, keep: str) -> str:
    indent = next((len(part) - len(part.lstrip(" ")) for part in below if part.strip()), 0)
    lines = [part[indent:] if part.strip() else "" for part in below]
    text = "\n".join(lines)
    if folded:
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", text.rstrip("\n"))
    bare = text.rstrip("\n")
    return bare if keep == "-" else f"{bare}\n" if keep == "" else f"{text}\n"
