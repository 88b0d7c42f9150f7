"""Whatever a posting's fields hold, the importer answers with items, and the service takes the manifest."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.workstead.importers.payworthy.test_importer import posting
from tests.unit.workstead.importers.sets import checked, read
from workstead.importers.payworthy.posting import FIELDS

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=20)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
ROWS = st.dictionaries(st.sampled_from(sorted(FIELDS)), VALUES, max_size=6)


@given(ROWS, st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_posting_is_an_item(tmp_path: Path, row: dict[str, Any], whole: bool) -> None:
    source = tmp_path / "rows.json"
    rows = [{**posting(), **row} if whole else row, posting(item_id="neighbour")]
    source.write_text(json.dumps(rows, ensure_ascii=True))
    with read("payworthy", source) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items if item["key"].startswith("neighbour")][-1:] == ["ok"]
        assert len(imported.items) == 2
