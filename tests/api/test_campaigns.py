"""Campaigns over HTTP: from the draft to verdicts, with everything that raters may and may not do."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from service.domain.run_states import Phase
from service.domain.tasks import GraderSpec
from service.store import gradings, runs
from service.store.campaigns import assignments
from tests.api.apps import app_of
from tests.api.helpers import Tenant, file_entry
from tests.api.raters import PANEL, RULES, browser, commissioned, delivered, joined, panel, people

UNKNOWN = "asg_00000000000000000000000000"


async def the_item(one: Tenant, campaign: str) -> Any:
    (item,) = (await one.get(f"/v1/campaigns/{campaign}/items"))["data"]
    return item


async def test_two_who_agree_decide_and_the_verdict_is_a_grading_with_votes(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    async with joined(tenant, campaign["id"], *people(3)) as (one, two, three):
        a, b = await one.take(), await two.take()
        assert a["id"] != b["id"]
        await one.rate(a["id"], {"rating": 2, "notes": "fine"})
        assert (await the_item(tenant, campaign["id"]))["verdict"] is None
        await two.rate(b["id"], {"rating": 3})
        assert await three.take(204) is None, "two who agree are enough"
    item = await the_item(tenant, campaign["id"])
    assert (item["verdict"], item["want"]) == ({"accept": True}, None)
    grading = await tenant.get(f"/v1/gradings/{item['grading_id']}")
    assert (grading["method"], grading["state"], grading["score"], grading["max_score"]) == (
        "human_panel", "graded", 1.0, 1.0,
    )  # fmt: skip
    assert grading["primary"] is False
    assert grading["detail"]["ratings"] == {"1": 0, "2": 1, "3": 1}
    async with tenant.state.db.reading() as tx:
        rows = (
            await tx.execute(text("SELECT judge, content FROM votes WHERE grading_id = :g"), {"g": grading["id"]})
        ).all()
    assert {(r.judge, r.content["rating"]) for r in rows} == {("rater:R1", 2), ("rater:R2", 3)}


async def test_a_third_decides_where_two_disagree(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    async with joined(tenant, campaign["id"], *people(4)) as (one, two, three, four):
        await one.rate_all(3)
        await two.rate_all(1)
        fail = {"rating": 1, "failed_early": True, "reason": "no file opens", "tags": ["cannot_open"]}
        await three.rate((await three.take())["id"], fail)
        await four.take(204)
    item = await the_item(tenant, campaign["id"])
    grading = await tenant.get(f"/v1/gradings/{item['grading_id']}")
    assert (item["verdict"], grading["score"], grading["detail"]["tags"]) == (
        {"accept": False},
        0.0,
        {"cannot_open": 1},
    )


async def test_a_success_is_passed_again_and_settled_by_a_fourth(tenant: Tenant) -> None:
    campaign = await panel(tenant, second_pass=True)
    async with joined(tenant, campaign["id"], *people(4)) as (one, two, three, four):
        await one.rate_all(2)
        await two.rate_all(2)
        assert (await the_item(tenant, campaign["id"]))["want"] == "second_pass"
        await three.rate_all(1)
        assert (await the_item(tenant, campaign["id"]))["want"] == "adjudication"
        await four.rate_all(1)
    assert (await the_item(tenant, campaign["id"]))["verdict"] == {"accept": False}
    checks = (await tenant.get(f"/v1/campaigns/{campaign['id']}"))["progress"]["second_pass"]
    assert checks == {"n": 1, "agreeing": 0, "share": 0.0, "failure_bound": None}


async def test_a_grading_that_waits_for_people_ends_the_run(tenant: Tenant) -> None:
    agent = await tenant.agent()
    run_id = (await tenant.post("/v1/runs", {"task": await commissioned(tenant), "agent": agent["id"]}))["id"]
    await tenant.seal(await tenant.start(run_id), [file_entry("output/report.md", b"done", "text/plain")])
    async with tenant.state.db.transaction() as tx:
        await runs.set_phase(tx, run_id, Phase.GRADING)
        run = await runs.load(tx, run_id)
        (waiting,) = await gradings.enqueue(
            tx, run, [GraderSpec(method="human_panel")], queues={"human_panel": "people"}
        )
    await delivered(tenant, await commissioned(tenant, "t/done"), agent["id"])
    waits = {"selection": {"where": {"phase": ["grading"]}}, "ratings_per_item": 1}
    campaign = await tenant.post("/v1/campaigns", PANEL | waits)
    await tenant.post(f"/v1/campaigns/{campaign['id']}/open", None, 200)
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        await one.rate_all(3)
    assert (await the_item(tenant, campaign["id"]))["grading_id"] == waiting.id
    run = await tenant.get(f"/v1/runs/{run_id}")
    assert (run["phase"], run["outcome"], run["verdict"]["score"]) == ("done", "graded", 1.0)


async def test_an_audit_checks_and_changes_nothing(tenant: Tenant) -> None:
    campaign = await panel(tenant, audit_share=1.0)
    async with joined(tenant, campaign["id"], *people(3)) as (one, two, three):
        await one.rate_all(1)
        await two.rate_all(1)
        item = await the_item(tenant, campaign["id"])
        assert (item["want"], item["verdict"]) == ("audit", {"accept": False})
        await three.rate_all(3)
    assert (await the_item(tenant, campaign["id"]))["verdict"] == {"accept": False}
    progress = (await tenant.get(f"/v1/campaigns/{campaign['id']}"))["progress"]
    assert (progress["audit"]["share"], progress["audit_met"]) == (0.0, False)


async def test_nothing_delivered_is_rejected_without_asking(tenant: Tenant) -> None:
    agent = await tenant.agent()
    await delivered(tenant, await commissioned(tenant), agent["id"], {})
    campaign = await tenant.post("/v1/campaigns", PANEL)
    await tenant.post(f"/v1/campaigns/{campaign['id']}/open", None, 200)
    item = await the_item(tenant, campaign["id"])
    assert item["verdict"] == {"accept": False, "rule": "no_output"}
    assert (await tenant.get(f"/v1/gradings/{item['grading_id']}"))["score"] == 0.0
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        await one.take(204)


async def test_an_invitation_works_once_and_a_new_one_ends_the_old(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    path = f"/v1/campaigns/{campaign['id']}/raters"
    added = (await tenant.post(path, {"raters": people(1)}))["data"][0]
    assert added["link"] == f"/rate#{added['code']}"
    assert added["code"] not in (await tenant.client.get(path)).text
    async with browser(app_of(tenant.state)) as first, browser(app_of(tenant.state)) as second:
        answer = await first.post("/rate/session", json={"code": added["code"]})
        assert answer.status_code == 204
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("workstead-rater=")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        again = await second.post("/rate/session", json={"code": added["code"]})
        assert (again.status_code, again.json()["type"]) == (401, "urn:workstead:problem:bad_invitation")
        assert (await first.get("/v1/rate")).json()["instruction"] == RULES
        anew = await tenant.post(f"{path}/{added['id']}/invite", None, 200)
        assert (await first.get("/v1/rate")).status_code == 401, "the session has ended with the old invitation"
        assert (await second.post("/rate/session", json={"code": anew["code"]})).status_code == 204


async def test_an_old_invitation_is_over(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    added = (await tenant.post(f"/v1/campaigns/{campaign['id']}/raters", {"raters": people(1)}))["data"][0]
    async with tenant.state.db.transaction() as tx:
        past = text("UPDATE raters SET invitation_expires_at = now() - interval '1 s' WHERE id = :id")
        await tx.execute(past, {"id": added["id"]})
    async with browser(app_of(tenant.state)) as one:
        assert (await one.post("/rate/session", json={"code": added["code"]})).status_code == 401


async def test_a_session_opens_nothing_but_its_own_items(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    async with joined(tenant, campaign["id"], *people(2)) as (one, two):
        item = await one.take()
        for what in ("", "/files/0", "/images/0"):
            assert (await two.browser.get(f"/v1/rate/{item['id']}{what}")).status_code == 404
        for what, body in (("beat", {"active_s": 1}), ("skip", {"reason": "x"}), ("release", None),
                           ("submit", {"client_id": "x", "rating": {"rating": 1}})):  # fmt: skip
            await two.do(item["id"], what, body, 404)
            await two.do(UNKNOWN, what, body, 404)
        for path in ("/v1/runs", "/v1/campaigns", f"/v1/campaigns/{campaign['id']}", "/v1/me", "/v1/gradings"):
            assert (await one.browser.get(path)).status_code == 401, path
        foreign = await one.browser.post("/v1/rate/next", headers={"Origin": "https://evil.test"})
        assert foreign.status_code == 403


async def test_a_rating_is_written_once_however_often_it_is_sent(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        item = await one.take()
        both = await asyncio.gather(*(one.rate(item["id"], {"rating": 2}, active_s=3) for _ in range(4)))
        assert all(answer == both[0] for answer in both)
        other = await one.rate(item["id"], {"rating": 1}, 409)
        assert other["type"] == "urn:workstead:problem:already_submitted"
    (rating,) = (await tenant.get(f"/v1/campaigns/{campaign['id']}/ratings?state=submitted"))["data"]
    assert (rating["rating"]["rating"], rating["instruction_version"]) == (2, 1)
    assert rating["instruction_sha256"] == campaign["instruction_sha256"]


NO_RATINGS: list[dict[str, Any]] = [
    {},
    {"rating": 4},
    {"rating": True},
    {"rating": 2, "failed_early": True, "reason": "x"},
    {"completion": "a", "quality": "b"},
    {"rating": 1, "failed_early": True},
    {"rating": 1, "tags": ["incomplete", "incomplete"]},
    {"rating": 1, "x": 1},
]


async def test_what_is_no_rating_is_refused(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        item = await one.take()
        for rating in NO_RATINGS:
            problem = await one.rate(item["id"], rating, 422)
            assert problem["type"] == "urn:workstead:problem:bad_rating", rating


async def _expire(tenant: Tenant, assignment: str) -> None:
    async with tenant.state.db.transaction() as tx:
        past = text("UPDATE rating_assignments SET leased_until = now() - interval '1 s' WHERE id = :id")
        await tx.execute(past, {"id": assignment})


async def test_a_lease_that_ran_out_gives_the_item_to_others_and_loses_no_rating(tenant: Tenant) -> None:
    campaign = await panel(tenant, ratings_per_item=1)
    async with joined(tenant, campaign["id"], *people(2)) as (one, two):
        mine = await one.take()
        await two.take(204)
        await _expire(tenant, mine["id"])
        await one.do(mine["id"], "beat", {"active_s": 5})
        await two.take(204)
        await _expire(tenant, mine["id"])
        theirs = await two.take()
        over = await one.do(mine["id"], "beat", {"active_s": 5}, 409)
        assert over["type"] == "urn:workstead:problem:assignment_over"
        await one.rate(mine["id"], {"rating": 1}, 409)
        await _expire(tenant, theirs["id"])
        await one.rate(mine["id"], {"rating": 1})
        await two.rate(theirs["id"], {"rating": 3}, 409)
    assert (await the_item(tenant, campaign["id"]))["verdict"] == {"accept": False}


async def test_at_once_no_item_gets_more_raters_than_it_waits_for(tenant: Tenant) -> None:
    campaign = await panel(tenant, 3)
    async with joined(tenant, campaign["id"], *people(8)) as raters:
        answers = await asyncio.gather(*(r.browser.post("/v1/rate/next") for r in raters))
        assert sorted(a.status_code for a in answers) == [200] * 6 + [204] * 2
    async with tenant.state.db.reading() as tx:
        given = await assignments.of_campaign(tx, campaign["id"])
    assert all(sum(a.item_id == b.item_id for b in given) == 2 for a in given)


async def test_skipped_is_for_others_and_released_comes_last(tenant: Tenant) -> None:
    campaign = await panel(tenant, 2, ratings_per_item=1)
    async with joined(tenant, campaign["id"], *people(2)) as (one, two):
        first = await one.take()
        assert (await one.take())["id"] == first["id"], "what is in hand comes again"
        await one.do(first["id"], "release")
        second = await one.take()
        assert second["id"] != first["id"]
        await one.do(second["id"], "skip", {"reason": "I know the author"})
        assert (await one.take())["id"] == first["id"]
        await one.rate(first["id"], {"rating": 1})
        await one.take(204)
        await two.rate_all(1)
        await two.take(204)
    reasons = [r["reason"] for r in (await tenant.get(f"/v1/campaigns/{campaign['id']}/ratings?state=skipped"))["data"]]
    assert reasons == ["I know the author"]


async def test_a_removed_rater_leaves_items_to_others_and_ratings_marked(tenant: Tenant) -> None:
    campaign = await panel(tenant, 2, ratings_per_item=1)
    path = f"/v1/campaigns/{campaign['id']}"
    async with joined(tenant, campaign["id"], *people(2)) as (one, two):
        await one.rate_all(1)
        await one.take()
        await two.take(204)
        gone = await tenant.client.delete(f"{path}/raters/{one.id}")
        assert (gone.status_code, gone.json()["handed_back"], gone.json()["state"]) == (200, 1, "removed")
        assert (await one.browser.get("/v1/rate")).status_code == 401
        await two.rate_all(1)
        invited = await tenant.post(f"{path}/raters/{one.id}/invite", None, 409)
        assert invited["type"] == "urn:workstead:problem:rater_removed"
    ratings = (await tenant.get(f"{path}/ratings?state=submitted"))["data"]
    assert {(r["rater"], r["rater_removed"]) for r in ratings} == {("R1", True), ("R2", False)}
    assert (await tenant.get(path))["decided"] == 2


async def test_the_lead_hands_back(tenant: Tenant) -> None:
    campaign = await panel(tenant, ratings_per_item=1)
    path = f"/v1/campaigns/{campaign['id']}/assignments"
    async with joined(tenant, campaign["id"], *people(2)) as (one, two):
        item = await one.take()
        await tenant.post(f"{path}/{item['id']}/hand-back", None, 200)
        assert (await one.browser.get(f"/v1/rate/{item['id']}")).status_code == 404
        await two.take()
        await tenant.post(f"{path}/{item['id']}/hand-back", None, 409)
        await tenant.post(f"{path}/{UNKNOWN}/hand-back", None, 404)


async def test_categories_send_items_to_their_raters(tenant: Tenant) -> None:
    campaign = await panel(tenant, 3, ratings_per_item=1)
    specs = [{"name": "A", "categories": ["c1"]}, {"name": "B", "categories": ["c0", "c2"]}]
    async with joined(tenant, campaign["id"], *specs) as (one, two):
        await one.rate_all(1)
        await one.take(204)
        await two.rate_all(1, 1)
        await two.take(204)


async def test_who_fails_the_trial_gets_nothing(tenant: Tenant) -> None:
    agent = await tenant.agent()
    task = await commissioned(tenant)
    golds = [await delivered(tenant, task, agent["id"]) for _ in range(2)]
    await delivered(tenant, await commissioned(tenant, "t/proper"), agent["id"])
    trial = {"golds": [{"run_id": g, "accept": i == 0} for i, g in enumerate(golds)], "threshold": 1.0}
    campaign = await tenant.post("/v1/campaigns", PANEL | {"qualification": trial})
    assert campaign["items"] == 1, "what qualifies raters is not rated"
    await tenant.post(f"/v1/campaigns/{campaign['id']}/open", None, 200)
    right = {g: 3 if i == 0 else 1 for i, g in enumerate(golds)}
    async with joined(tenant, campaign["id"], *people(2)) as (good, bad):
        for _ in golds:
            item = await good.take()
            await good.rate(item["id"], {"rating": right[await _run_of(tenant, item["id"])]})
        assert (await good.browser.get("/v1/rate")).json()["trial"] == {"needed": 2, "done": 2, "passed": True}
        await good.rate_all(1)
        await bad.rate_all(1, 1)
        refused = await bad.take(403)
        assert refused["type"] == "urn:workstead:problem:not_qualified"
    progress = {r["pseudonym"]: r for r in (await tenant.get(f"/v1/campaigns/{campaign['id']}"))["progress"]["raters"]}
    assert (progress["R1"]["qualified"], progress["R2"]["qualified"]) == (True, False)
    assert (progress["R1"]["golds_right"], progress["R2"]["golds_right"], progress["R1"]["submitted"]) == (2, 1, 1)


async def _run_of(tenant: Tenant, assignment: str) -> str:
    async with tenant.state.db.reading() as tx:
        query = "SELECT i.run_id FROM campaign_items i JOIN rating_assignments a ON a.item_id = i.id WHERE a.id = :id"
        return (await tx.execute(text(query), {"id": assignment})).scalar_one()


async def test_seconds_are_bounded_by_what_has_passed(tenant: Tenant) -> None:
    campaign = await panel(tenant)
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        item = await one.take()
        kept = await one.do(item["id"], "beat", {"active_s": 9999})
        assert kept["active_s"] < 600
        done = await one.rate(item["id"], {"rating": 1}, active_s=0.0)
        assert done["active_s"] == pytest.approx(kept["active_s"]), "what was counted stays"
        assert done["active_s"] <= done["wall_s"]


async def test_a_draft_and_a_closed_campaign_give_nothing(tenant: Tenant) -> None:
    agent = await tenant.agent()
    await delivered(tenant, await commissioned(tenant), agent["id"])
    campaign = await tenant.post("/v1/campaigns", PANEL)
    path = f"/v1/campaigns/{campaign['id']}"
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        assert (await one.take(409))["type"] == "urn:workstead:problem:campaign_not_open"
        await tenant.post(f"{path}/open", None, 200)
        item = await one.take()
        await tenant.post(f"{path}/close", None, 200)
        await one.rate(item["id"], {"rating": 1}, 409)
    assert (await tenant.post(f"{path}/open", None, 409))["type"] == "urn:workstead:problem:campaign_closed"
    assert (await tenant.post(f"{path}/raters", {"raters": people(1)}, 409))["status"] == 409


async def test_a_changed_instruction_is_another_version(tenant: Tenant) -> None:
    campaign = await panel(tenant, 2, ratings_per_item=1)
    path = f"/v1/campaigns/{campaign['id']}"
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        await one.rate_all(1)
        changed = await tenant.client.patch(path, json={"instruction": "Be strict.", "due_at": "2027-01-01T00:00:00Z"})
        assert (changed.json()["instruction_version"], changed.json()["due_at"]) == (2, "2027-01-01T00:00:00.000Z")
        same = await tenant.client.patch(path, json={"instruction": "Be strict."})
        assert same.json()["instruction_version"] == 2
        await one.rate_all(1)
    ratings = (await tenant.get(f"{path}/ratings"))["data"]
    assert sorted(r["instruction_version"] for r in ratings) == [1, 2]
    assert len({r["instruction_sha256"] for r in ratings}) == 2
    assert (
        await asyncio.to_thread(lambda: tenant.state.blobs.open(ratings[0]["instruction_sha256"][7:]).close()) is None
    )


async def test_a_program_rates_by_its_token(tenant: Tenant) -> None:
    campaign = await panel(tenant, ratings_per_item=1)
    token = await tenant.post("/v1/tokens", {"scopes": ["rate"]})
    unfit = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    path = f"/v1/campaigns/{campaign['id']}/raters"
    await tenant.post(path, {"raters": [{"name": "bot", "token_id": unfit["id"]}]}, 422)
    added = (await tenant.post(path, {"raters": [{"name": "bot", "token_id": token["id"]}]}))["data"][0]
    assert (added["kind"], added["state"], added["code"]) == ("token", "active", None)
    headers = {"Authorization": f"Bearer {token['secret']}"}
    assert (await tenant.client.post("/v1/rate/next", headers=headers)).status_code == 422
    taken = await tenant.client.post(f"/v1/rate/next?campaign_id={campaign['id']}", headers=headers)
    body = {"client_id": "1", "rating": {"rating": 2}}
    done = await tenant.client.post(f"/v1/rate/{taken.json()['id']}/submit", json=body, headers=headers)
    assert (taken.status_code, done.status_code) == (200, 200), done.text
    other = await tenant.client.post(f"/v1/rate/next?campaign_id={campaign['id']}")
    assert other.status_code == 404, "a token that is no rater of the campaign"


async def test_a_campaign_is_made_once_by_its_key_and_the_feed_tells_of_it(tenant: Tenant) -> None:
    agent = await tenant.agent()
    await delivered(tenant, await commissioned(tenant), agent["id"])
    made = [await tenant.client.post("/v1/campaigns", json=PANEL, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert made[0].json() == made[1].json()
    changes = (await tenant.get("/v1/changes?kinds=campaign"))["data"]
    assert [(c["id"], c["body"]["state"], c["body"]["items"]) for c in changes] == [(made[0].json()["id"], "draft", 1)]
    assert not [c for c in (await tenant.get("/v1/changes"))["data"] if c["kind"] == "campaign"]


async def test_an_empty_selection_is_refused(tenant: Tenant) -> None:
    problem = await tenant.post("/v1/campaigns", PANEL, 422)
    assert problem["type"] == "urn:workstead:problem:no_items"
