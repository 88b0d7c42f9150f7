"""Result tables as data frames of the reader's own library."""

from io import BytesIO

import httpx
import polars as pl
import pytest

from tests.unit.workstead.fake_api import Script, client, sync_client


def _answer() -> httpx.Response:
    file = BytesIO()
    pl.DataFrame({"run_id": ["run_1"], "counted": [0.5]}).write_parquet(file)
    return httpx.Response(200, content=file.getvalue())


async def test_a_table_is_a_frame() -> None:
    script = Script(_answer())
    async with client(script) as one:
        found = await one.reports.frame("eval_1", "runs")
    assert found.equals(pl.DataFrame({"run_id": ["run_1"], "counted": [0.5]}))
    assert script.requests[0].url.path == "/v1/evaluations/eval_1/tables/runs.parquet"


def test_without_the_library_it_says_so_before_anything_is_asked() -> None:
    script = Script()
    with sync_client(script) as one, pytest.raises(ModuleNotFoundError, match="pandas"):
        one.reports.frame("eval_1", "runs", library="pandas")
    assert script.left == 0
