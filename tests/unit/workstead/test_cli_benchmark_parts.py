"""``benchmarks derive | embed | embeddings``: what is asked of the service, and what is said of the answer."""

import json
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

TIME = "2026-11-01T12:00:00.000Z"
BENCHMARK: dict[str, Any] = {
    "id": "bench_1", "name": "pw", "version": "1", "digest": "sha256:" + "0" * 64, "counts": {"ok": 3}, "facets": {},
    "labels": {}, "revision": 1, "created_at": TIME,
}  # fmt: skip
DERIVED: dict[str, Any] = {
    "benchmark": BENCHMARK | {"id": "bench_2", "name": "part"}, "digest": "sha256:" + "1" * 64, "fitting": 8, "taken": 4,
    "strata": [{"name": "law", "fitting": 5, "taken": 4}], "empty": ["art"], "useless": ["x*"],
}  # fmt: skip


def answer(body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def found() -> httpx.Response:
    return answer({"data": [BENCHMARK], "next": None})


def operation(**changes: Any) -> httpx.Response:
    plain: dict[str, Any] = {
        "id": "op_1", "kind": "embeddings", "state": "succeeded", "done": 3, "total": 3, "unit": "tasks", "log": [],
        "result": {"made": 2, "tasks": 3}, "problem": None, "revision": 3, "created_at": TIME, "ended_at": TIME,
    }  # fmt: skip
    return answer(plain | changes)


def test_a_rule_is_put_together_and_what_it_met_is_said(server: Server) -> None:
    words = (
        "benchmarks", "derive", "pw", "part@2", "--include", "i*", "--exclude", "i9", "--facet", "kind@1=a",
        "--facet", "kind@1=b", "--facet", "split=public", "--price", "50..", "--undisputed", "--stratify", "category",
        "--per-stratum", "2", "--stratum", "law", "--seed", "7", "--label", "for=pilot",
    )  # fmt: skip
    done = server.run(*words, answers=[found(), answer(DERIVED)])
    assert done.exit_code == 0, done.output
    assert server.asked[-1] == ("POST", "/v1/benchmarks/bench_1/derive")
    sent = json.loads(server.script.bodies[-1])
    assert (sent["name"], sent["version"], sent["labels"], sent["dry_run"]) == ("part", "2", {"for": "pilot"}, False)
    assert sent["rule"] == {
        "include": ["i*"], "exclude": ["i9"], "facets": {"kind@1": ["a", "b"], "split": ["public"]},
        "price": {"least_usd": "50"}, "disputed": False, "seed": 7,
        "sample": {"stratify": "category", "per_stratum": 2, "total": None, "proportional": False, "strata": ["law"]},
    }  # fmt: skip
    for said in ("part@1", "4 of 8", "law", "nothing fits 'art'", "'x*' matches nothing"):
        assert said in done.output


def test_a_policy_that_is_named_is_changed_and_the_parents_others_stay(server: Server) -> None:
    whole = answer(BENCHMARK | {"head": {"policies": {"clock": "working", "missing": "zero"}}})
    words = ("benchmarks", "derive", "bench_1", "part@1", "--policy", "missing=exclude")
    done = server.run(*words, answers=[found(), whole, answer(DERIVED)])
    assert done.exit_code == 0, done.output
    assert json.loads(server.script.bodies[-1])["policies"] == {"clock": "working", "missing": "exclude"}


def test_counting_makes_nothing(server: Server) -> None:
    words = ("benchmarks", "derive", "bench_1", "part@1", "--total", "9", "--dry-run")
    done = server.run(*words, answers=[found(), answer(DERIVED | {"benchmark": None})])
    assert json.loads(server.script.bodies[-1])["dry_run"] is True
    assert "nothing was made" in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("part",), "NAME@VERSION"), (("part@1", "--facet", "kind"), "FACET=VALUE"), (("part@1", "--price", "5"), "LEAST..MOST"),
        (("part@1", "--price", ".."), "LEAST..MOST"), (("part@1", "--price", "a..b"), "LEAST..MOST"),
        (("part@1", "--price", "nan..1"), "LEAST..MOST"), (("part@1", "--policy", "missing"), "NAME=VALUE"),
    ],
)  # fmt: skip
def test_mistakes_are_named_before_anything_is_asked(server: Server, words: tuple[str, ...], said: str) -> None:
    done = server.run("benchmarks", "derive", "bench_1", *words, answers=[])
    assert (done.exit_code, server.asked) == (1, [])
    assert said in done.output


def test_vectors_are_asked_for_and_waited_for(server: Server) -> None:
    answers = [found(), operation(state="queued"), operation(), operation()]
    done = server.run("benchmarks", "embed", "bench_1", "acme/vectors", "--dimensions", "64", answers=answers)
    assert done.exit_code == 0, done.output
    assert [json.loads(body) for body in server.script.bodies if body] == [{"model": "acme/vectors", "dimensions": 64}]
    assert "2 made, 3 tasks have them" in done.output
    failed = server.run(
        "benchmarks", "embed", "bench_1", "m", answers=[found(), operation(), operation(state="failed")]
    )
    assert failed.exit_code == 1
    assert "op_1: failed" in failed.output


def test_what_vectors_there_are(server: Server) -> None:
    kinds = {"data": [{"model": "acme/vectors", "asked_dimensions": 0, "length": 1536, "tasks": 3}]}
    done = server.run("benchmarks", "embeddings", "bench_1", answers=[found(), answer(kinds)])
    assert all(said in done.output for said in ("acme/vectors", "its own", "1536"))
    done = server.run("benchmarks", "embeddings", "bench_1", "--json", answers=[found(), answer(kinds)])
    assert json.loads(done.output)["asked_dimensions"] == 0
