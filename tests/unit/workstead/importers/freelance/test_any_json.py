"""Whatever stands in the file, the answer is a manifest that the service takes, or one error in words."""

import contextlib
import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.workstead.importers.sets import DEMO, checked, read
from workstead.importers.untrusted import parse_json
from workstead.task_dir import InvalidInput

VALID = [json.loads((DEMO / f"freelance/{shape}.json").read_text())[0] for shape in ("shape_a", "shape_b")]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**20, max_value=10**40),
    st.floats(),
    st.text(st.characters(exclude_categories=())),
    st.sampled_from(["USD", "A", "60 minutes", "tests", "../x", "alphabetical, numbers only", "%", "x" * 300, "1e400"]),
)
ANY = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        children = list(enumerate(value))  # pyright: ignore[reportUnknownArgumentType]
    return [path, *(p for key, child in children for p in paths(child, (*path, key)))]


PLACES = [(i, path) for i, item in enumerate(VALID) for path in paths(item) if path]


def changed(index: int, path: tuple[Any, ...], value: Any) -> Any:
    item = copy.deepcopy(VALID[index])
    node: Any = item
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return item


def imported(text: str, **options: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.json"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        # Anything but this error would be a traceback on somebody's terminal.
        with contextlib.suppress(InvalidInput), read("freelance", path, **options) as result:
            checked(result)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANY)
def test_anything(value: Any) -> None:
    imported(json.dumps(value))
    imported(json.dumps([value, VALID[0]]))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PLACES), ANY, st.sampled_from(["strict", "suite"]))
def test_a_valid_item_with_anything_somewhere(place: tuple[int, tuple[Any, ...]], value: Any, mode: str) -> None:
    options = {"suite": "text"} if mode == "suite" else {}
    imported(json.dumps([changed(*place, value), *VALID]), **options)


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("-+.0123456789eENaInfity"), max_size=30))
@example("1e-99999")
@example("1E308")
@example("1e309")
def test_numbers_never_explode(text: str) -> None:
    try:
        value = parse_json(text.encode())
    except ValueError:
        return
    assert len(f"{value:f}" if hasattr(value, "as_tuple") else str(value)) < 1_000
