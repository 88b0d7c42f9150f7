"""Whatever a project's metadata hold, the project stays usable."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.workstead.importers.rli.test_importer import add
from tests.unit.workstead.importers.sets import checked, read

FIELDS = (
    "total_project_cost", "human_completion_hours", "currency", "price_kind", "category", "subcategory", "evaluator_note",
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["min", "max", "x"]), inner)
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
@example({"category": "a\0b", "subcategory": "\ud800", "evaluator_note": "\0"})
@settings(max_examples=60, deadline=None)
def test_any_metadata_leaves_the_project_usable(metadata: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        add(Path(folder), metadata=json.dumps(metadata))
        with read("rli", Path(folder)) as imported:
            item = checked(imported).items[0]
    assert (item.status, item.task is None) == ("ok", False), item.problems
