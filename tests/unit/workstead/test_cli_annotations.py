"""``annotations …``: what is asked of the service, what people's files become, and what is said of the answers."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

TIME = "2026-11-01T12:00:00.000Z"


def made(**changes: Any) -> httpx.Response:
    plain: dict[str, Any] = {
        "id": "ans_1", "revision": 1, "name": "kind", "version": 1, "overlay": "kind@1", "about": "task", "state": "draft",
        "benchmark_id": "bench_1", "template": "annotation@1", "template_digest": "sha256:" + "0" * 64, "total": 6,
        "answered": 0, "refused": 0, "unreadable": 0, "excluded": 0, "failed": 0, "brought": 0, "operation_id": None,
        "stopped_because": None, "labels": {}, "author": "tok_1", "created_at": TIME, "started_at": None, "ended_at": None,
        "accepted_at": None, "accepted_by": None, "digest": None, "spec": {}, "targets": 3, "valued": 0, "agreement": {},
        "estimate": {"votes": 6, "cost_usd": "0.012000"}, "cost_usd": None,
    }  # fmt: skip
    return httpx.Response(200, json=plain | changes)


def operation(state: str = "succeeded") -> httpx.Response:
    found: dict[str, Any] = {
        "id": "op_1", "kind": "annotations", "state": state, "done": 6, "total": 6, "unit": "annotations", "log": [],
        "result": {}, "problem": None, "revision": 3, "created_at": TIME, "ended_at": TIME,
    }  # fmt: skip
    return httpx.Response(200, json=found)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_a_set_is_drawn_up_asked_for_and_shown(server: Server, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("What is it made of?")
    agreement = {"items": 3, "kappa": 0.5, "unanimous": 2, "ties": 1}
    answers = [
        made(), made(state="running", operation_id="op_1"), operation(),
        made(state="done", answered=5, refused=1, valued=2, agreement=agreement),
    ]  # fmt: skip
    words = (
        "annotations", "make", "kind", "--benchmark", "pw", "--question", f"@{tmp_path / 'q.txt'}", "--answer",
        "words=all text", "--answer", "numbers", "--model", "acme/one:low", "--votes", "2", "--tasks", "3", "--yes",
    )  # fmt: skip
    done = server.run(*words, answers=answers)
    assert done.exit_code == 0, done.output
    wish = json.loads(server.script.bodies[0])
    assert wish["question"] == "What is it made of?"
    assert wish["answer"] == {"kind": "labels", "labels": {"words": "all text", "numbers": ""}, "several": False}
    assert (wish["annotators"], wish["votes"]) == ([{"model": "acme/one", "effort": "low"}], 2)
    assert [path for _, path in server.asked][1:] == [
        "/v1/annotation-sets/ans_1/start", "/v1/operations/op_1", "/v1/annotation-sets/ans_1",
    ]  # fmt: skip
    for said in ("kind@1", "5 answered, 1 refused", "2 of 3 items; 1 ties", "κ 0.500 over 3 items"):
        assert said in done.output


def test_nobody_is_asked_before_a_yes(server: Server) -> None:
    words = ("annotations", "make", "kind", "--task", "task_1", "--question", "?", "--yes-no", "--model", "acme/one")
    done = server.run(*words, answers=[made()], stdin="n\n")
    assert done.exit_code == 1
    assert "6 votes on 3 items, about 0.012000 USD" in done.output
    assert server.asked == [("POST", "/v1/annotation-sets")]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--number", "1..5"), {"kind": "number", "least": 1.0, "most": 5.0, "whole": True}),
        (("--number", "0..0.5"), {"kind": "number", "least": 0.0, "most": 0.5, "whole": False}),
        (("--yes-no",), {"kind": "boolean"}), (("--words",), {"kind": "text"}),
        (("--answer", "a", "--answer", "b", "--several"), {"kind": "labels", "labels": {"a": "", "b": ""}, "several": True}),
    ],
)  # fmt: skip
def test_every_shape_of_an_answer(server: Server, words: tuple[str, ...], answer: dict[str, Any]) -> None:
    done = server.run("annotations", "make", "kind", "--task", "t", "--question", "?", *words, answers=[made()])
    assert done.exit_code == 0, done.output
    assert json.loads(server.script.bodies[0])["answer"] == answer


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--question", "?"), "say what an answer is"), (("--question", "?", "--words", "--yes-no"), "say what an answer is"),
        (("--words",), "--question"), (("--question", "?", "--number", "five"), "no range such as 1..5"),
    ],
)  # fmt: skip
def test_mistakes_are_named_before_anything_is_asked(server: Server, words: tuple[str, ...], said: str) -> None:
    done = server.run("annotations", "make", "kind", "--task", "t", *words, answers=[])
    assert (done.exit_code, server.asked) == (1, [])
    assert said in done.output


def test_what_people_say_comes_from_a_table_or_lines(server: Server, tmp_path: Path) -> None:
    table, lines = tmp_path / "said.csv", tmp_path / "said.jsonl"
    table.write_text("\ufeffid,value,reason\ni0,words,\ni1,numbers,a sheet\n", encoding="utf-8")
    lines.write_text('{"target": "i0", "value": ["a", "b"]}\n\n')
    brought = httpx.Response(200, json={"new": 1, "known": 1})
    done = server.run("annotations", "import", "ans_1", str(table), answers=[brought])
    assert "1 new, 1 known already" in done.output
    assert json.loads(server.script.bodies[0])["annotations"] == [
        {"target": "i0", "value": "words"}, {"target": "i1", "value": "numbers", "reason": "a sheet"},
    ]  # fmt: skip
    server.run("annotations", "import", "ans_1", str(lines), answers=[brought])
    assert json.loads(server.script.bodies[0])["annotations"] == [{"target": "i0", "value": ["a", "b"]}]
    for text, said in (("id\ni0\n", "no column 'value'"), ("id,value\ni0\n", "line 2: not as many cells")):
        table.write_text(text)
        done = server.run("annotations", "import", "ans_1", str(table), answers=[])
        assert done.exit_code == 1
        assert said in done.output


def test_values_say_whose_they_are_and_what_is_a_tie(server: Server) -> None:
    rows: list[dict[str, Any]] = [
        {"target": "task_1", "item_key": "i0", "value": 2.5, "votes": 2, "agreeing": 1, "tied": [], "by_person": True},
        {"target": "task_2", "item_key": None, "value": None, "votes": 2, "agreeing": 0, "tied": ["a", "b"], "by_person": False},
    ]  # fmt: skip
    page = httpx.Response(200, json={"data": rows, "next": None})
    done = server.run("annotations", "values", "ans_1", "--open", answers=[page])
    assert done.exit_code == 0, done.output
    assert all(said in done.output for said in ("i0", "2.5", "1/2", "yes", "task_2", "a, b"))
    assert dict(server.script.requests[0].url.params)["only"] == "open"


def test_a_set_is_sealed_cancelled_and_listed(server: Server) -> None:
    sealed = made(state="done", accepted_at=TIME, digest="sha256:" + "2" * 64)
    done = server.run("annotations", "accept", "ans_1", answers=[sealed])
    assert "2026-11-01 12:00 sha256:22" in done.output
    assert server.asked == [("POST", "/v1/annotation-sets/ans_1/accept")]
    done = server.run("annotations", "cancel", "ans_1", answers=[made(state="cancelled")])
    assert "cancelled" in done.output
    page = httpx.Response(200, json={"data": [json.loads(sealed.content)], "next": None})
    done = server.run("annotations", "list", answers=[page])
    assert "accepted" in done.output
