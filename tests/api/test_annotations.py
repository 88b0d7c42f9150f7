"""``/v1/annotation-sets``: drafts, people's labels, acceptance, and the facets that follow from it."""

from typing import Any

import pytest

from tests.api.helpers import Tenant

MODEL = "acme/oracle"
ANSWER = {"kind": "labels", "labels": {"words": "text", "numbers": "sheets", "pictures": ""}}
PATH = "/v1/annotation-sets"


async def benchmark(tenant: Tenant) -> Any:
    items = [{"key": f"i{n}", "task": {"name": f"t/{n}", "instruction": f"work {n}"}} for n in range(4)]
    source = {"importer": "made_up", "importer_version": "1"}
    manifest = {"name": "pw", "version": "1", "source": source, "items": items}
    return await tenant.post("/v1/benchmarks", {"manifest": manifest})


async def drawn(tenant: Tenant, **wish: Any) -> Any:
    plain: dict[str, Any] = {"name": "kind", "benchmark": "pw", "question": "What is it made of?", "answer": ANSWER}
    return await tenant.post(PATH, plain | wish)


async def bring(tenant: Tenant, made: Any, *said: tuple[str, Any], status: int = 200) -> Any:
    rows = [{"target": target, "value": value} for target, value in said]
    return await tenant.post(f"{PATH}/{made['id']}/annotations", {"annotations": rows}, status)


def type_of(problem: Any) -> str:
    return str(problem["type"].rpartition(":")[2])


async def test_a_draft_says_what_it_takes_and_versions_are_counted_on(tenant: Tenant) -> None:
    await benchmark(tenant)
    await tenant.model(MODEL)
    made = await drawn(tenant, annotators=[{"model": MODEL}], votes=3, labels={"week": "48"})
    assert (made["state"], made["overlay"], made["targets"], made["total"]) == ("draft", "kind@1", 4, 12)
    assert (made["estimate"]["votes"], made["estimate"]["cost_usd"]) == (12, None)
    assert made["estimate"]["input_tokens"] > 500
    assert made["agreement"]["items"] == 0
    assert (await drawn(tenant))["overlay"] == "kind@2"
    listed = await tenant.get(f"{PATH}?label.week=48&name=kind&total=true")
    assert (listed["total"], listed["data"][0]["id"]) == (1, made["id"])


async def test_once_for_a_key(tenant: Tenant) -> None:
    await benchmark(tenant)
    body = {"name": "kind", "benchmark": "pw", "question": "What?", "answer": ANSWER}
    answers = [await tenant.client.post(PATH, json=body, headers={"Idempotency-Key": "one"}) for _ in range(2)]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert (await tenant.get(f"{PATH}?total=true"))["total"] == 1


async def test_started_cancelled_and_started_again(tenant: Tenant) -> None:
    await benchmark(tenant)
    await tenant.model(MODEL)
    made = await drawn(tenant, annotators=[{"model": MODEL}])
    path = f"{PATH}/{made['id']}"
    started = await tenant.post(f"{path}/start", {}, 200)
    assert (await tenant.post(f"{path}/start", {}, 200))["operation_id"] == started["operation_id"]
    operation = await tenant.get(f"/v1/operations/{started['operation_id']}")
    assert (operation["kind"], operation["state"]) == ("annotations", "queued")
    early = await tenant.post(f"{path}/accept", None, 409)
    assert type_of(early) == "annotations_incomplete"
    assert (await tenant.post(f"{path}/cancel", None, 200))["state"] == "cancelled"
    assert (await tenant.post(f"{path}/start", {}, 200))["operation_id"] != started["operation_id"]


async def test_people_label_accept_and_the_labels_are_a_facet(tenant: Tenant) -> None:
    whole = await benchmark(tenant)
    made = await drawn(tenant)
    path = f"{PATH}/{made['id']}"
    assert type_of(await tenant.post(f"{path}/start", {}, 422)) == "no_annotators"
    assert type_of(await tenant.post(f"{path}/accept", None, 409)) == "no_values"
    assert await bring(tenant, made, ("i0", "words"), ("i1", "numbers"), ("i2", "words")) == {"new": 3, "known": 0}
    assert await bring(tenant, made, ("i0", "words"), ("i2", "pictures")) == {"new": 1, "known": 1}
    assert type_of(await bring(tenant, made, ("i9", "words"), status=422)) == "target_not_in_set"
    assert type_of(await bring(tenant, made, ("i3", "music"), status=422)) == "bad_value"
    values = (await tenant.get(f"{path}/values"))["data"]
    assert [(one["item_key"], one["value"], one["by_person"]) for one in values] == [
        ("i0", "words", True), ("i1", "numbers", True), ("i2", "pictures", True), ("i3", None, False),
    ]  # fmt: skip
    assert [one["item_key"] for one in (await tenant.get(f"{path}/values?only=open"))["data"]] == ["i3"]
    assert len((await tenant.get(f"{path}/annotations?annotator=person"))["data"]) == 4
    derived = {"name": "part", "version": "1", "rule": {"facets": {"kind@1": ["words", "pictures"]}}}
    before = await tenant.post(f"/v1/benchmarks/{whole['id']}/derive", derived, 404)
    assert type_of(before) == "overlay_not_found"  # a draft is no facet
    sealed = await tenant.post(f"{path}/accept", None, 200)
    assert sealed["accepted_at"] is not None
    assert (await tenant.post(f"{path}/accept", None, 200))["digest"] == sealed["digest"]
    assert type_of(await bring(tenant, made, ("i3", "words"), status=409)) == "annotations_accepted"
    part = await tenant.post(f"/v1/benchmarks/{whole['id']}/derive", derived)
    keys = [one["key"] for one in (await tenant.get(f"/v1/benchmarks/{part['benchmark']['id']}/items"))["data"]]
    assert keys == ["i0", "i2"]
    card = await tenant.get(f"/v1/benchmarks/{whole['id']}/card")
    assert "kind@1" in str(card)


async def test_texts_and_runs_are_items_too(tenant: Tenant) -> None:
    texts = await drawn(tenant, about="text", benchmark=None, texts={"m1": "hello", "m2": "bye"})
    assert (texts["targets"], texts["about"]) == (2, "text")
    assert await bring(tenant, texts, ("m2", "words")) == {"new": 1, "known": 0}
    run = await tenant.run()
    works = await drawn(tenant, about="deliverable", benchmark=None, run_ids=[run["id"]])
    assert works["targets"] == 1


@pytest.mark.parametrize(
    ("changes", "status", "type"),
    [
        ({"annotators": [{"model": "no/such"}]}, 422, "unknown_model"), ({"benchmark": "none"}, 404, "benchmark_not_found"),
        ({"benchmark": None, "task_ids": ["task_none"]}, 404, "task_not_found"),
        ({"benchmark": None, "about": "deliverable", "run_ids": ["run_none"]}, 404, "run_not_found"),
        ({"tasks": {"facets": {"tone@1": ["warm"]}}}, 404, "overlay_not_found"),
        ({"tasks": {"include": ["nothing"]}}, 422, "no_tasks"), ({"template": "annotation@9"}, 422, "unknown_template"),
        ({"about": "text"}, 422, "invalid_request"), ({"answer": {"kind": "stars"}}, 422, "invalid_request"),
    ],
)  # fmt: skip
async def test_what_cannot_be_asked_is_refused_at_once(
    tenant: Tenant, changes: dict[str, Any], status: int, type: str
) -> None:
    await benchmark(tenant)
    plain: dict[str, Any] = {"name": "kind", "benchmark": "pw", "question": "What?", "answer": ANSWER}
    answer = await tenant.client.post(PATH, json=plain | changes)
    assert answer.status_code == status, answer.text
    assert type_of(answer.json()) == type


async def test_who_may_only_read_labels_nothing(tenant: Tenant) -> None:
    await benchmark(tenant)
    made = await drawn(tenant)
    reader = await tenant.token("runs:read")
    assert (await tenant.client.get(f"{PATH}/{made['id']}/values", headers=reader)).status_code == 200
    for path, body in (("start", {}), ("accept", None), ("annotations", {"annotations": [{"target": "i0", "value": "words"}]})):  # fmt: skip
        answer = await tenant.client.post(f"{PATH}/{made['id']}/{path}", json=body, headers=reader)
        assert answer.status_code == 403
