"""Reports over evaluations: by the benchmark's kind, as JSON, as a page, as pictures; what does not fit is refused."""

import sys
from subprocess import run
from typing import Any

import pytest

from tests.api.helpers import Tenant
from tests.api.results import evaluation, filled


def named(report: Any, name: str) -> Any:
    return next(table for table in report["tables"] if table["name"] == name)


async def test_a_report_is_of_the_benchmarks_paper_and_says_what_it_rests_on(tenant: Tenant) -> None:
    evaluation_id, made = await filled(tenant)
    report = await tenant.get(f"/v1/evaluations/{evaluation_id}/report")
    assert (report["kind"], report["header"]["benchmark"], report["header"]["runs"]) == ("freelance", "set@1", 9)
    assert report["header"]["policies"]["no_deliverable"] == "zero"
    assert report["header"]["notice"] == "Not for deployment claims."
    results = named(report, "freelance_results")
    assert results["n"] == 5
    assert results["excluded"] == {
        "assisted": 1, "infrastructure": 1, "invalidated": 1, "partial_after_limit": 1, "without tests": 1,
    }  # fmt: skip
    by_agent = {row["agent"]: row for row in results["rows"]}
    assert sum(row["solved"] for row in by_agent.values()) == 2
    validity = {line["name"]: line for line in report["validity"]}
    assert validity["assisted"]["count"] == 1
    assert validity["alias_drift"]["by_agent"] == {"acme/one": 2}
    assert made


async def test_kind_and_settings_are_the_readers(tenant: Tenant) -> None:
    evaluation_id, _ = await filled(tenant)
    path = f"/v1/evaluations/{evaluation_id}/report"
    overview = await tenant.get(f"{path}?kind=overview")
    assert named(overview, "results")["settings"]["seed"] == 7
    other = await tenant.post(f"{path}?kind=overview", {"seed": 11, "draws": 200, "missing": "exclude"}, 200)
    assert other["header"]["settings"]["seed"] == 11
    assert named(other, "results")["settings"]["draws"] == 200
    again = await tenant.post(f"{path}?kind=overview", {"seed": 11, "draws": 200, "missing": "exclude"}, 200)
    assert again == other
    await tenant.get(f"{path}?kind=secret", 422)
    refused = await tenant.post(f"{path}?kind=overview", {"options": {"no_such": 1}}, 422)
    assert refused["type"] == "urn:workstead:problem:invalid_option"


async def test_page_and_figures(tenant: Tenant) -> None:
    evaluation_id, _ = await filled(tenant)
    path = f"/v1/evaluations/{evaluation_id}/report"
    answer = await tenant.client.get(path, headers={"Accept": "text/html"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert "<!doctype html>" in answer.text
    svg = await tenant.client.get(f"{path}/plots/earnings.svg")
    png = await tenant.client.get(f"{path}/plots/earnings.png")
    assert (svg.content[:4], png.content[:4]) == (b"<svg", b"\x89PNG")
    assert svg.headers["content-disposition"].startswith("attachment")
    await tenant.get(f"{path}/plots/exclusions.svg", 422)
    await tenant.get(f"{path}/plots/earnings.gif", 404)


async def test_several_evaluations_and_two_beside_each_other(tenant: Tenant, other: Tenant) -> None:
    first, _ = await filled(tenant)
    async with tenant.state.db.transaction() as tx:
        from service.store.tables_evaluations import evaluations

        row = (await tx.execute(evaluations.select().where(evaluations.c.id == first))).mappings().one()
        await tx.execute(evaluations.insert().values({**row, "id": f"{first}2", "name": "second"}))
    both = {"evaluations": [first, f"{first}2"]}
    report = await tenant.post("/v1/reports", {**both, "kind": "overview"}, 200)
    assert report["header"]["evaluations"] == both["evaluations"]
    assert report["header"]["title"] == "week · second"
    compared = await tenant.post("/v1/reports:compare", both, 200)
    assert compared["kind"] == "comparison"
    one = await tenant.post("/v1/reports:compare", {"evaluations": [first]}, 422)
    assert one["type"] == "urn:workstead:problem:two_evaluations"
    for path in ("/v1/reports", "/v1/reports:compare", "/v1/reports:leaderboard"):
        answer = await other.client.post(path, json=both)
        assert answer.status_code == 404, path


@pytest.mark.parametrize("phase", ["draft", "checking"])
async def test_what_has_not_begun_has_no_report(tenant: Tenant, phase: str) -> None:
    evaluation_id, _, _ = await evaluation(tenant)
    async with tenant.state.db.transaction() as tx:
        from service.store.tables_evaluations import evaluations

        await tx.execute(evaluations.update().where(evaluations.c.id == evaluation_id).values(state=phase))
    answer = await tenant.get(f"/v1/evaluations/{evaluation_id}/report", 409)
    assert answer["type"] == "urn:workstead:problem:evaluation_not_started"


async def test_an_evaluation_without_runs_has_an_empty_report(tenant: Tenant) -> None:
    evaluation_id, _, _ = await evaluation(tenant)
    for kind in ("overview", "freelance", "jobbench"):
        report = await tenant.get(f"/v1/evaluations/{evaluation_id}/report?kind={kind}")
        assert report["header"]["tasks"] == 4


async def test_no_more_reports_at_once_than_the_process_bears(tenant: Tenant) -> None:
    evaluation_id, _, _ = await evaluation(tenant)
    tenant.state.open_reports = tenant.state.config.max_reports
    answer = await tenant.get(f"/v1/evaluations/{evaluation_id}/report", 503)
    assert answer["type"] == "urn:workstead:problem:too_many_reports"
    tenant.state.open_reports = 0
    await tenant.get(f"/v1/evaluations/{evaluation_id}/report")
    assert tenant.state.open_reports == 0


def test_no_process_loads_frames_and_figures_at_its_start() -> None:
    large = ("polars", "numpy", "scipy", "altair", "vl_convert", "sklearn")
    for module in ("service.wiring.api", "service.wiring.worker", "service.wiring.gateway"):
        code = f"import sys, {module}; print([m for m in {large!r} if m in sys.modules])"
        done = run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == "[]", module


async def test_a_leaderboard_is_in_the_layout_of_its_site(tenant: Tenant) -> None:
    evaluation_id, _ = await filled(tenant)
    settings = {"options": {"aggregate": "micro"}}
    found = await tenant.post("/v1/reports:leaderboard", {"evaluations": [evaluation_id], "settings": settings}, 200)
    assert (found["aggregate"], found["notice"]) == ("micro", "Not for deployment claims.")
    assert [row["rank"] for row in found["leaderboard"]] == sorted(row["rank"] for row in found["leaderboard"])
    first = found["leaderboard"][0]
    assert first["overallScore"] == pytest.approx(100 * first["totalScore"] / first["maxScore"], abs=0.005)
    refused = {"evaluations": [evaluation_id], "settings": {"options": {"aggregate": "best"}}}
    problem = await tenant.post("/v1/reports:leaderboard", refused, 422)
    assert problem["type"] == "urn:workstead:problem:invalid_option"
