"""The page of evaluations: its own project's, with the way to reports that exist, and no script."""

from collections.abc import AsyncIterator

import httpx
import pytest

from service.api.auth import page_caller
from service.api.state import ApiState
from service.dashboard.app import install
from service.dashboard.visitor import Dashboard
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant
from tests.api.results import evaluation


@pytest.fixture
async def pages(state: ApiState) -> AsyncIterator[httpx.AsyncClient]:
    app = app_of(state)
    install(app, Dashboard(state.db, page_caller))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


async def test_evaluations_are_listed_with_the_way_to_their_reports(
    tenant: Tenant, other: Tenant, pages: httpx.AsyncClient
) -> None:
    assert (await pages.get("/evaluations")).headers["location"] == "/login"
    mine, _, _ = await evaluation(tenant, "<script>week</script>")
    theirs, _, _ = await evaluation(other)
    await pages.post("/login", data={"token": tenant.secret}, headers={"Origin": BASE})
    answer = await pages.get("/evaluations")
    assert answer.status_code == 200
    assert f'href="/v1/evaluations/{mine}/report"' in answer.text
    assert f'href="/v1/evaluations/{mine}/tables/runs.csv"' in answer.text
    assert theirs not in answer.text
    assert "<script>week" not in answer.text
    report = await pages.get(f"/v1/evaluations/{mine}/report", headers={"Accept": "text/html"})
    assert report.status_code == 200
    assert (await pages.get("/evaluations?cursor=x")).status_code == 422
