"""A client's own loop drives a sandbox of ours: leases, actions, their events, and every way that it can end."""

import asyncio
import json
from typing import Any

import pytest

from service.domain.run_states import EndedBecause, Flag, Outcome, StopMode
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import RIGHT, until


async def test_a_remote_loop_does_a_task_and_is_graded(remote: Remote) -> None:
    run = await remote.begin()
    base = f"/v1/runs/{run.id}"
    assignment = await remote.call("GET", f"{base}/assignment")
    assert (assignment["instruction"], assignment["files"][0]["path"]) == ("Add up input.csv.", "input.csv")
    lease = await remote.claim(run.id)
    assert (lease["attempt"], lease["run_token"]) == (1, None)
    assert 10 <= lease["heartbeat_s"] <= 30
    assert await remote.call("GET", f"{base}/files/input.csv") == b"40\n2\n"
    done = await remote.exec(run.id, "sh", "-c", "cat; echo err >&2; exit 3", stdin="in")
    assert (done["code"], done["stdout"], done["stderr"]) == (3, "in", "err\n")
    data = json.dumps(RIGHT).encode()
    written = await remote.call("PUT", f"{base}/files/output/answers.json", content=data)
    assert written["size_bytes"] == len(data)
    listed = await remote.call("GET", f"{base}/files", params={"path": "output"})
    assert [(e["name"], e["kind"], e["size_bytes"]) for e in listed["data"]] == [("answers.json", "file", len(data))]
    await remote.call("POST", f"{base}/finish", 202, json={"summary": "added up"})
    row = await remote.end(run.id)
    assert (row.outcome, row.ended_because, row.score) == (Outcome.GRADED, EndedBecause.COMPLETED, 2.0)
    assert row.tool_calls == 4
    names = [(e.type, e.payload.get("name")) for e in await remote.stage.events(run.id, "tool.call", "tool.result")]
    calls = ["read_file", "exec", "write_file", "list_files"]
    assert names == [pair for name in calls for pair in (("tool.call", name), ("tool.result", None))]
    actions = [e.payload["action"] for e in await remote.stage.events(run.id, "driver")]
    assert actions == ["claimed", "finished"]
    assert (await remote.stage.attempts(run.id))[0].argv == []


async def test_the_log_says_what_a_program_did(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    await remote.exec(run.id, "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; exit 2", call_id="one")
    call, result = await remote.stage.events(run.id, "tool.call", "tool.result")
    assert (call.payload["id"], call.payload["arguments"]["argv"][0]) == ("one", "sh")
    assert (result.payload["code"], result.payload["is_error"], result.payload["stdout_bytes"]) == (2, True, 200_000)
    assert result.payload["payload_blob"]
    assert result.payload["payload_bytes"] < 80_000


async def test_a_failed_tool_is_said_to_the_driver_and_in_the_log(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    problem = await remote.call("GET", f"/v1/runs/{run.id}/files/none.txt", 404)
    assert problem["type"].endswith(":file_not_found")
    await remote.exec(run.id, "no-such-program", status=422)
    results = [e.payload for e in await remote.stage.events(run.id, "tool.result")]
    assert [r["is_error"] for r in results] == [True, True]


async def test_output_is_streamed(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    headers = {"Accept": "text/event-stream"}
    text = await remote.call(
        "POST", f"/v1/runs/{run.id}/exec", json={"argv": ["sh", "-c", "echo ä; echo b >&2; exit 4"]}, headers=headers
    )
    found = [block.split("\n") for block in text.decode().split("\n\n") if block.startswith("event:")]
    events: list[tuple[str, Any]] = [
        (b[0].removeprefix("event: "), json.loads(b[1].removeprefix("data: "))) for b in found
    ]
    assert [e for e in events if e[0] == "output"] == [
        ("output", {"stream": "stdout", "text": "ä\n"}), ("output", {"stream": "stderr", "text": "b\n"}),
    ]  # fmt: skip
    assert (events[-1][0], events[-1][1]["code"]) == ("done", 4)


@pytest.mark.parametrize("path", ["heartbeat", "exec", "finish", "usage", "release"])
async def test_without_the_lease_nothing_is_done(remote: Remote, path: str) -> None:
    run = await remote.begin()
    body = {"argv": ["touch", "output/x"]} if path == "exec" else {}
    for lease in ("", "lease_wrong"):
        problem = await remote.call("POST", f"/v1/runs/{run.id}/{path}", 409, json=body, lease=lease)
        assert problem["type"].endswith(":lease_lost")
    await remote.claim(run.id)
    problem = await remote.call("POST", f"/v1/runs/{run.id}/{path}", 409, json=body, lease=remote.lease + "x")
    assert problem["type"].endswith(":lease_lost")
    assert [e.payload["action"] for e in await remote.stage.events(run.id, "driver")] == ["claimed"]
    assert not await remote.stage.events(run.id, "tool.call")


async def test_a_claimed_run_is_not_claimed_again_until_the_lease_is_over(remote: Remote) -> None:
    run = await remote.begin()
    first = (await remote.claim(run.id, "first"))["lease"]
    problem = await remote.call("POST", f"/v1/runs/{run.id}/claim", 409, json={"holder": "second"})
    assert problem["type"].endswith(":run_claimed")
    await _age_lease(remote, run.id)
    await until(lambda: remote.stage.has_event(run.id, "driver", 2))
    problem = await remote.exec(run.id, "true", status=409)
    assert problem["type"].endswith(":lease_lost")
    await remote.claim(run.id, "second")
    assert (await remote.exec(run.id, "true"))["code"] == 0
    await remote.call("POST", f"/v1/runs/{run.id}/exec", 409, json={"argv": ["true"]}, lease=first)
    actions = [(e.payload["action"], e.payload["holder"]) for e in await remote.stage.events(run.id, "driver")]
    assert actions == [("claimed", "first"), ("lost", "first"), ("claimed", "second")]
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={"status": "failure"})
    assert (await remote.end(run.id)).ended_because is EndedBecause.SCAFFOLD_ERROR


async def test_a_released_run_is_taken_up_where_it_was_left(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id, "first")
    await remote.exec(run.id, "touch", "here")
    await remote.call("POST", f"/v1/runs/{run.id}/release", 204)
    await remote.claim(run.id, "second")
    assert (await remote.exec(run.id, "ls", "here"))["code"] == 0


async def test_the_wall_clock_ends_a_run_whose_driver_never_came(remote: Remote) -> None:
    run = await remote.begin(limits={"wall_clock_s": 0.6})
    row = await remote.end(run.id)
    assert (row.ended_because, row.outcome) == (EndedBecause.WALL_CLOCK, Outcome.GRADED)
    problem = await remote.call("POST", f"/v1/runs/{run.id}/claim", 409, json={"holder": "late"})
    assert problem["type"].endswith(":run_not_ready")


async def test_a_stop_ends_the_drive(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    sleeping = asyncio.create_task(remote.exec(run.id, "sleep", "30", status=409))
    await until(lambda: remote.stage.has_event(run.id, "tool.call"))
    await remote.stage.stop(run.id, StopMode.COLLECT)
    problem = await asyncio.wait_for(sleeping, 15)
    assert problem["type"].endswith(":lease_lost")
    row = await remote.end(run.id)
    assert row.ended_because is EndedBecause.STOPPED


async def test_a_program_outlives_its_worker_and_runs_once(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    script = "echo run >> runs; while [ ! -e go ]; do sleep 0.02; done; wc -l < runs"
    call = asyncio.create_task(remote.exec(run.id, "sh", "-c", script))
    await until(lambda: remote.stage.has_event(run.id, "tool.call"))
    await asyncio.sleep(0.3)
    await remote.kill_worker()
    await remote.start_worker(run.id)
    await remote.exec(run.id, "touch", "go")
    done = await asyncio.wait_for(call, 30)
    assert (done["code"], done["stdout"].strip()) == (0, "1")
    assert len(await remote.stage.events(run.id, "run.ready")) == 1
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={})
    assert (await remote.end(run.id)).ended_because is EndedBecause.COMPLETED


async def test_a_finish_while_no_worker_runs_is_found_by_the_next_one(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    await remote.kill_worker()
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={})
    problem = await remote.call("POST", f"/v1/runs/{run.id}/heartbeat", 409)
    assert problem["type"].endswith(":lease_lost")
    await remote.start_worker(run.id)
    assert (await remote.end(run.id)).ended_because is EndedBecause.COMPLETED


async def test_declared_usage_is_marked(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    for tokens in (10, 25):
        said = await remote.call(
            "POST",
            f"/v1/runs/{run.id}/usage",
            json={"requests": 2, "input_tokens": tokens, "output_tokens": 7, "cost_usd": "0.125"},
        )
        assert said == {"counted": True}
    run_view = await remote.call("GET", f"/v1/runs/{run.id}")
    assert run_view["usage"]["input_tokens"] == 25
    assert (run_view["usage"]["cost_usd"], run_view["usage"]["cost_basis"]) == ("0.125", "declared")
    assert Flag.COST_DECLARED in run_view["flags"]


async def test_another_drivers_run_cannot_be_claimed(remote: Remote) -> None:
    run = await remote.stage.submit(await remote.stage.task(), await remote.stage.agent())
    problem = await remote.call("POST", f"/v1/runs/{run.id}/claim", 409, json={"holder": "x"})
    assert problem["type"].endswith(":not_remote")


async def _age_lease(remote: Remote, run_id: str) -> None:
    from sqlalchemy import func

    from service.store.tables_models import leases

    async with remote.stage.db.transaction() as tx:
        await tx.execute(leases.update().where(leases.c.run_id == run_id).values(expires_at=func.clock_timestamp()))


async def test_a_lease_that_ran_out_opens_nothing_though_nobody_took_it_away(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    await remote.kill_worker()
    await _age_lease(remote, run.id)
    problem = await remote.call("POST", f"/v1/runs/{run.id}/heartbeat", 409)
    assert problem["type"].endswith(":lease_lost")


async def test_a_repeated_call_id_is_one_call(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    argv = ["sh", "-c", "echo run >> runs; wc -l < runs"]
    answers = [await remote.exec(run.id, *argv, call_id="same") for _ in range(2)]
    assert [a["stdout"].strip() for a in answers] == ["1", "1"]
    assert len(await remote.stage.events(run.id, "tool.call", "tool.result")) == 2
