"""The judges of a replayed grading are answered from the recording of the one that it repeats: no provider is asked."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from service.store import projects
from tests.integration.gateway.bench import GateBench, messages
from tests.integration.gateway.test_replayed_clients import own_side

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _headers(project: str, subject: str, replay: str | None = None, purpose: str = "judge") -> dict[str, str]:
    told = {
        "x-api-key": "service-token", "x-workstead-project": project, "x-workstead-purpose": purpose,
        "x-workstead-model": "test/anthropic", "x-workstead-subject": subject,
    }  # fmt: skip
    return told if replay is None else {**told, "x-workstead-replay": replay}


def _question(text: str) -> dict[str, Any]:
    return messages(system="Say yes or no.", messages=[{"role": "user", "content": text}])


async def _asked(bench: GateBench, project: str, own: httpx.AsyncClient, subject: str, *texts: str) -> list[bytes]:
    answers = [
        await own.post("/v1/messages", json=_question(text), headers=_headers(project, subject)) for text in texts
    ]
    assert [one.status_code for one in answers] == [200] * len(texts)
    await bench.ledger.flush()
    return [one.content for one in answers]


async def test_each_answer_is_given_again_once(bench: GateBench, tmp_path: Path) -> None:
    project = (await bench.grant()).project_id
    async with own_side(bench, tmp_path) as own:
        said = await _asked(bench, project, own, "grd_first", "r1", "r2", "r1")
        bench.begin("unreachable")
        headers = _headers(project, "grd_again", "grd_first")
        for text, answer in (("r1", said[0]), ("r2", said[1]), ("r1", said[2])):
            again = await own.post("/v1/messages", json=_question(text), headers=headers)
            assert (again.status_code, again.content) == (200, answer)
        over = await own.post("/v1/messages", json=_question("r1"), headers=headers)
        assert (over.status_code, over.json()["error"]["code"]) == (400, "cassette_mismatch")
        # Another grading that repeats the same one has all of it.
        third = await own.post(
            "/v1/messages", json=_question("r1"), headers=_headers(project, "grd_third", "grd_first")
        )
        assert third.content == said[0]
    assert not bench.asked()


async def test_what_was_not_asked_then_is_not_asked_now(bench: GateBench, tmp_path: Path) -> None:
    project = (await bench.grant()).project_id
    async with own_side(bench, tmp_path) as own:
        await _asked(bench, project, own, "grd_one", "r1")
        bench.begin("unreachable")
        differs = await own.post("/v1/messages", json=_question("r9"), headers=_headers(project, "grd_two", "grd_one"))
        assert (differs.status_code, differs.json()["error"]["code"]) == (400, "cassette_mismatch")
        nowhere = await own.post(
            "/v1/messages", json=_question("r1"), headers=_headers(project, "grd_x", "grd_nowhere")
        )
        assert (nowhere.status_code, "no recording" in nowhere.text) == (400, True)
        # Another project's grading is none.
        async with bench.db.transaction() as tx:
            other = await projects.create(tx, "other", untrusted=False)
        foreign = _headers(other.id, "grd_y", "grd_one")
        refused = await own.post("/v1/messages", json=_question("r1"), headers=foreign)
        assert (refused.status_code, "no recording" in refused.text) == (400, True)
    assert not bench.asked()


async def test_only_judges_have_a_recorded_grading(bench: GateBench, tmp_path: Path) -> None:
    project = (await bench.grant()).project_id
    async with own_side(bench, tmp_path) as own:
        bench.begin("unreachable")
        for headers in (
            _headers(project, "grd_a", "grd_b", purpose="check"),
            {k: v for k, v in _headers(project, "grd_a", "grd_b").items() if k != "x-workstead-subject"},
        ):
            answer = await own.post("/v1/messages", json=_question("r1"), headers=headers)
            assert answer.status_code == 400
            assert "x-workstead-replay" in answer.text
    assert not bench.asked()
