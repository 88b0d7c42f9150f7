"""``GET /v1/benchmarks/{id}/card``: what a benchmark is made of, of its usable items only."""

from typing import Any

import pytest

from tests.api.helpers import Tenant
from tests.api.test_benchmarks import item, manifest


def dollars(amount: str, **more: Any) -> dict[str, Any]:
    return {"price": {"amount": amount, "currency": "USD", "usd": amount, "basis": "posted", **more}}


async def test_a_card(tenant: Tenant) -> None:
    refs = [
        {"path": path, "sha256": await tenant.blob(text.encode()), "size_bytes": len(text)}
        for path, text in (("a/orders.CSV", "one"), ("b.csv", "three"), ("Makefile", "x"), ("a.b/c", "yy"))
    ]
    body = manifest(
        item("a", visible=refs[:3], facets={"category": "x"}, human_time_s=3600, **dollars("2")),
        item("b", visible=refs[1:2], facets={"category": "y"}, human_time_s=7200, **dollars("8")),
        item("c", visible=refs[3:], human_time_s=14_400, **dollars("32", basis="midpoint")),
        item("d", price={"amount": "9", "currency": "EUR", "basis": "imputed"}),
        {
            **item("e", visible=refs[:1], human_time_s=1, **dollars("1000000")),
            "status": "quarantined",
            "problems": [{"type": "bad_file"}],
        },
        notice="Cite us.",
        policies={"missing": "exclude"},
        groupings=[{"name": "category", "facet": "category"}],
    )
    made = await tenant.post("/v1/benchmarks", {"manifest": body})
    path = f"/v1/benchmarks/{made['id']}/card"
    card = await tenant.get(path)
    assert (card["id"], card["name"], card["notice"]) == (made["id"], "set", "Cite us.")
    assert card["counts"] == {"items": 5, "ok": 4, "disputed": 0, "quarantined": 1, "checked": {}}
    assert card["facets"]["category"]["values"] == {"x": 1, "y": 1}
    assert card["formats"] == [
        {"suffix": "csv", "tasks": 2, "files": 3, "size_bytes": 13},
        {"suffix": None, "tasks": 2, "files": 2, "size_bytes": 3},
    ]
    price = card["price_usd"]
    assert (price["n"], price["missing"], price["total"], price["min"], price["p50"], price["max"]) == (
        3,
        1,
        42,
        2,
        8,
        32,
    )
    assert card["price_basis"] == {"imputed": 1, "midpoint": 1, "posted": 2}
    assert (card["human_hours"]["n"], card["human_hours"]["mean"]) == (3, pytest.approx(7 / 3))
    assert card["price_and_hours"] == {"n": 3, "r": pytest.approx(1)}
    assert card["policies"]["missing"] == "exclude"
    assert card["groupings"][0]["facet"] == "category"
    response = await tenant.client.get(path)
    tag = response.headers["etag"]
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 304


async def test_a_benchmark_that_states_nothing(tenant: Tenant) -> None:
    made = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"))})
    card = await tenant.get(f"/v1/benchmarks/{made['id']}/card")
    assert (card["price_usd"], card["human_hours"], card["formats"], card["price_basis"]) == (None, None, [], {})
    assert card["price_and_hours"] == {"n": 0, "r": None}
