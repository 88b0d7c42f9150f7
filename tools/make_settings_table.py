"""Write the table of settings into README.md from service/settings.py: names, defaults, the docstring of each field.

``--check`` compares instead of writing and exits 1 if the table is stale.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from service import settings

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- settings: tools/make_settings_table.py writes this table -->\n", "<!-- end of settings -->"
PREFIX = "WORKSTEAD_"
FOR_TESTS = frozenset({"crash_tests"})
"""No user sets these."""
_UNITS = ((30, "GiB"), (20, "MiB"), (10, "KiB"))


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield (variable, default, meaning). Raises ValueError for a setting without a docstring."""
    meanings = docstrings(inspect.getsource(settings))
    yield from _rows(settings.Settings, PREFIX, meanings)


def _rows(model: type[BaseModel], prefix: str, meanings: dict[tuple[str, str], str]) -> Iterator[tuple[str, str, str]]:
    later: list[tuple[type[BaseModel], str]] = []
    for name, field in model.model_fields.items():
        kind = cast("Any", field.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            later.append((kind, f"{prefix}{name.upper()}__"))
        elif name not in FOR_TESTS:
            meaning = meanings.get((model.__name__, name))
            if meaning is None:
                raise ValueError(f"{model.__name__}.{name} has no docstring below it")
            yield f"{prefix}{name.upper()}", default(field), meaning
    for inner, inner_prefix in later:
        yield from _rows(inner, inner_prefix, meanings)


def docstrings(source: str) -> dict[tuple[str, str], str]:
    """Return (class, field) → the string below the field, on one line."""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            for field, below in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_string(below):
                    text = cast("Any", below).value.value
                    found[node.name, field.target.id] = " ".join(str(text).split())
    return found


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def default(field: FieldInfo) -> str:
    """Return the default in words; one that depends on the machine is in the meaning."""
    if field.default_factory is not None:
        made = cast("Any", field.default_factory)()
        return f"`{json.dumps(made)}`" if isinstance(made, list | dict) else "see there"
    value: Any = field.default
    if value is None or isinstance(value, SecretStr):
        return "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"`{value}`{_size(value)}"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _size(value: int) -> str:
    for shift, unit in _UNITS:
        if value >= 1 << shift and value % (1 << shift) == 0:
            return f" ({value >> shift} {unit})"
    return ""


def table() -> str:
    """Return the table in Markdown."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {value} | {_cell(meaning)} |" for name, value, meaning in rows()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", text).replace("|", "\\|").replace("<", "&lt;")


def renewed(readme: str) -> str:
    """Return the README with its table as the code would write it. Raises ValueError if it has no place for it."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("README.md has no place for the table of settings")
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> int:
    text = README.read_text(encoding="utf-8")
    fresh = renewed(text)
    if "--check" in sys.argv[1:]:
        if fresh != text:
            print(
                "stale: the table of settings in README.md (run python tools/make_settings_table.py)", file=sys.stderr
            )
        return int(fresh != text)
    README.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
