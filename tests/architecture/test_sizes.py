"""Files of at most 500 lines and functions of at most 60: the tail is what makes a code base hard to read."""

import ast
from pathlib import Path

from tests.architecture.repository import files, python_files, syntax, text

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
_GENERATED = ("api_schema", "tests/data")
_WRITTEN = {".py", ".sh", ".html", ".css", ".js", ".toml", ".md", ""}


def _is_written_by_hand(path: Path) -> bool:
    return path.suffix in _WRITTEN and not str(path).startswith(_GENERATED)


def test_no_file_is_too_long() -> None:
    lengths = {str(path): (text(path) or "").count("\n") for path in files() if _is_written_by_hand(path)}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    too_long: dict[str, int] = {}
    for path in python_files():
        # A migration is one list of statements, in order; cutting it into functions would hide that.
        if path.parts[:2] == ("migrations", "versions"):
            continue
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    too_long[f"{path}:{node.lineno} {node.name}"] = lines
    assert too_long == {}
