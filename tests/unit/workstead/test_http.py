"""Retries, problems, lists."""

import httpx
import pytest

from tests.unit.workstead.fake_api import Script, client, problem, run_body, sync_client
from workstead.errors import (
    Conflict,
    Disconnected,
    Invalid,
    NotFound,
    Problem,
    ProtocolError,
    RateLimited,
    ServerError,
    Unauthenticated,
    Unavailable,
    problem_from,
)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Unauthenticated), (404, NotFound), (409, Conflict), (422, Invalid), (429, RateLimited), (503, Unavailable),
     (500, ServerError), (418, Problem)],
)  # fmt: skip
def test_problems_are_typed(status: int, kind: type[Problem]) -> None:
    error = problem_from(problem(status, "some_slug", detail="why", extra=7))
    assert type(error) is kind
    assert (error.type, error.detail, error.fields["extra"], error.request_id) == ("some_slug", "why", 7, "req_1")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"[" * 100_000])
def test_any_body_makes_a_problem(body: bytes) -> None:
    assert problem_from(httpx.Response(502, content=body)).type == "http_502"


def test_validation_errors_are_in_the_message() -> None:
    errors = [{"pointer": "#/limits/pids", "detail": "too small"}, "odd"]
    assert "#/limits/pids: too small" in str(problem_from(problem(422, "invalid_request", errors=errors)))


def test_what_there_is_instead_is_in_the_message() -> None:
    error = problem_from(problem(422, "unknown_sort", detail="not so", known=["score", 7]))
    assert str(error) == "unknown_sort (422): not so; known: score, 7"
    assert str(problem_from(problem(422, "unknown_sort", detail="not so", known={}))).endswith("not so")


async def test_reads_are_retried_and_retry_after_is_heard(waits: list[float]) -> None:
    busy = problem(429, "rate_limited")
    busy.headers["Retry-After"] = "7"
    script = Script(httpx.ConnectError("x"), busy, problem(503, "away"), httpx.Response(200, json=run_body()))
    async with client(script) as api:
        assert (await api.runs.get("run_1")).phase == "queued"
    assert len(waits) == 3
    assert waits[1] == 7


async def test_a_submission_is_repeated_under_one_key() -> None:
    script = Script(httpx.ReadError("cut"), httpx.Response(201, json=run_body()))
    async with client(script) as api:
        await api.runs.create("task_1", "solver")
    keys = [r.headers["Idempotency-Key"] for r in script.requests]
    assert keys[0] == keys[1]
    assert script.bodies[0] == script.bodies[1]


async def test_what_is_not_safe_is_not_repeated() -> None:
    script = Script(httpx.ReadError("cut"))
    async with client(script) as api:
        with pytest.raises(Disconnected):
            await api.agents.create("demo@1")


async def test_retries_end() -> None:
    script = Script(*[problem(503, "away")] * 4)
    async with client(script) as api:
        with pytest.raises(Unavailable):
            await api.me()
    assert script.left == 0


async def test_an_answer_that_is_not_json_is_a_protocol_error() -> None:
    async with client(Script(httpx.Response(200, content=b"<html>"))) as api:
        with pytest.raises(ProtocolError):
            await api.me()


async def test_lists_follow_next_but_never_to_another_origin() -> None:
    first = httpx.Response(200, json={"data": [run_body("run_1")], "next": "http://elsewhere/v1/runs?cursor=abc"})
    script = Script(first, httpx.Response(200, json={"data": [run_body("run_2")], "next": None}))
    async with client(script) as api:
        assert [r.id async for r in api.runs.list({"phase": "done"})] == ["run_1", "run_2"]
    assert str(script.requests[1].url) == "http://there/v1/runs?cursor=abc"
    assert script.requests[0].url.params["phase"] == "done"


def test_lists_stop_at_the_limit() -> None:
    page = httpx.Response(200, json={"data": [run_body("run_1"), run_body("run_2")], "next": "/v1/runs?cursor=x"})
    with sync_client(Script(page)) as api:
        assert [r.id for r in api.runs.list(limit=1)] == ["run_1"]


async def test_unknown_enum_values_are_kept() -> None:
    body = run_body(phase="teleporting", outcome="sublime", verdict={"state": "undreamt", "fraction": None})
    async with client(Script(httpx.Response(200, json=body))) as api:
        run = await api.runs.get("run_1")
    assert (run.phase, run.outcome, run.verdict.state, run.verdict.passed) == (
        "teleporting",
        "sublime",
        "undreamt",
        None,
    )


async def test_wait_polls_until_done() -> None:
    script = Script(*[httpx.Response(200, json=run_body(phase=p)) for p in ("running", "grading", "done")])
    async with client(script) as api:
        assert (await api.runs.wait("run_1")).done
    assert [r.url.params.get("until") for r in script.requests] == [None, "graded", "graded"]
