"""The synchronous client is generated, and whole."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import workstead.aio
import workstead.sync
from tools.make_sync_client import convert, stale


def test_generated_files_are_fresh() -> None:
    assert stale() == []


def test_nothing_asynchronous_is_left() -> None:
    for module in (workstead.sync, *_parts()):
        tree = ast.parse(inspect.getsource(module))
        kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
        assert not [node for node in ast.walk(tree) if isinstance(node, kinds)]
        assert "async" not in inspect.getsource(module).replace("# Generated", "").split("\n", 1)[1].lower()


def _parts() -> list[ModuleType]:
    names = [path.stem for path in Path(workstead.sync.__file__).parent.glob("_sync/*.py") if path.stem != "__init__"]
    return [import_module(f"workstead._sync.{name}") for name in names]


def test_both_clients_have_the_same_members() -> None:
    def members(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")} - {"aclose", "close"}

    assert members(workstead.aio.AsyncClient) == members(workstead.sync.Client)


def test_conversion_rewrites_tokens_not_text() -> None:
    source = 'import asyncio\n\n\nasync def f(x):\n    """Keep asyncio as a word."""\n    await asyncio.sleep(x)\n'
    made = convert(source)
    assert "import time" in made
    assert "    time.sleep(x)" in made
    assert "Keep asyncio as a word." in made
