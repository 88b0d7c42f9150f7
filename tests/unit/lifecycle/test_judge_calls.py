"""Calls to judges: one client per model, and whose fault a call without an answer is."""

import asyncio
from pathlib import Path

import pytest

from service.domain.grants import GrantedModel
from service.domain.judging import JudgeSpec
from service.domain.models import Dialect, ModelSpec
from service.graders.contract import GraderBusy, GraderFault, InvalidVote, Question
from service.lifecycle import judge_calls
from service.lifecycle.judge_calls import JudgeCalls, checked
from service.lifecycle.judge_turns import Turns
from service.lifecycle.operations.contract import OwnWay
from service.models.messages import Answer, Ask, GatewayAway, ModelRefused, Reach, Stop
from service.store.database import Database

QUESTION = Question("system", "text", "t@1", "template")
JUDGE = JudgeSpec(model="lab/judge", temperature=None)


class Clients:
    """Every client that was made, what it was asked, and what it answers."""

    def __init__(self, answer: Answer | Exception | None = None) -> None:
        self.answer = answer or Answer(text="{}")
        self.made: list[Reach] = []
        self.closed: list[Reach] = []
        self.asks: list[Ask] = []

    def __call__(self, reach: Reach) -> "One":
        self.made.append(reach)
        return One(self, reach)


class One:
    def __init__(self, all_: Clients, reach: Reach) -> None:
        self._all, self._reach = all_, reach

    async def ask(self, ask: Ask) -> Answer:
        self._all.asks.append(ask)
        await asyncio.sleep(0)
        if isinstance(self._all.answer, Exception):
            raise self._all.answer
        return self._all.answer

    async def close(self) -> None:
        self._all.closed.append(self._reach)


def model(name: str = "lab/judge") -> GrantedModel:
    spec = ModelSpec(name=name, provider="lab", upstream_id="j", dialect=Dialect.OPENAI, base_url="https://lab.example")
    return GrantedModel(id=f"mdl_{name}", spec=spec)


@pytest.fixture
def way(tmp_path: Path) -> OwnWay:
    (tmp_path / "token").write_text("of-ours\n")
    return OwnWay(tmp_path / "models.sock", tmp_path / "token")


def calls_of(way: OwnWay, clients: Clients) -> JudgeCalls:
    nowhere = Database("postgresql+psycopg://nobody@127.0.0.1:1/none")  # asked for nothing here
    return JudgeCalls(nowhere, way, Turns(4), connect=clients)


async def ask(calls: JudgeCalls, one: GrantedModel, judge: JudgeSpec = JUDGE) -> Answer:
    return await calls.ask("prj_1", one, judge, lambda: QUESTION, "grd_1")


async def test_one_client_for_all_calls_to_a_model(way: OwnWay) -> None:
    clients = Clients()
    calls = calls_of(way, clients)
    await asyncio.gather(*(ask(calls, model()) for _ in range(8)))
    assert len(clients.made) == 1
    reach, first = clients.made[0], clients.asks[0]
    assert (reach.token, reach.chat, reach.headers["x-workstead-purpose"]) == ("of-ours", False, "judge")
    assert (first.system, first.subject, first.temperature, first.max_output_tokens) == (
        "system",
        "grd_1",
        None,
        16_384,
    )
    await ask(calls, model(), JUDGE.model_copy(update={"chat": True}))
    assert [one.chat for one in clients.made] == [False, True]
    await calls.close()
    assert clients.closed == clients.made


async def test_clients_that_nobody_uses_are_closed(way: OwnWay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_calls, "MOST_CLIENTS", 2)
    clients = Clients()
    calls = calls_of(way, clients)
    for n in range(4):
        await ask(calls, model(f"lab/{n}"))
    assert clients.closed == clients.made[:2]
    await calls.close()


@pytest.mark.parametrize(
    ("error", "kind", "type_"),
    [
        (GatewayAway("provider_unavailable", ""), GraderBusy, "judge_unavailable"),
        (GatewayAway("gateway_away", ""), GraderBusy, "judge_unavailable"),
        (ModelRefused("provider_failed", "", http_status=429), GraderBusy, "judge_unavailable"),
        (ModelRefused("answer_cut", "", http_status=200), GraderBusy, "judge_unavailable"),
        (ModelRefused("provider_failed", "", http_status=400), GraderFault, "judge_misconfigured"),
        (ModelRefused("model_refused", "", http_status=400), GraderFault, "judge_refused"),
        (ModelRefused("context_too_long", "", http_status=400), GraderFault, "context_too_long"),
        (ModelRefused("budget_exhausted", "", http_status=400), GraderFault, "budget_exhausted"),
        (ModelRefused("bad_answer", "", http_status=200), InvalidVote, None),
    ],
)
async def test_whose_fault_it_is(way: OwnWay, error: Exception, kind: type[Exception], type_: str | None) -> None:
    calls = calls_of(way, Clients(error))
    with pytest.raises(kind) as caught:
        await ask(calls, model())
    assert getattr(caught.value, "type", None) == type_
    await calls.close()


async def test_a_gateway_that_has_not_started_is_waited_for(tmp_path: Path) -> None:
    calls = calls_of(OwnWay(tmp_path / "none.sock", tmp_path / "none"), Clients())
    with pytest.raises(GraderBusy) as caught:
        await ask(calls, model())
    assert caught.value.type == "judge_unavailable"


@pytest.mark.parametrize(
    ("stop", "cause"), [("length", "too_long"), ("refusal", "refused"), ("tool_calls", "schema"), ("other", "stopped")]
)
def test_an_answer_that_did_not_end_by_itself_is_no_vote(stop: Stop, cause: str) -> None:
    with pytest.raises(InvalidVote, match=cause):
        checked(Answer(text='{"passed": true}', stop=stop))
    assert checked(Answer(text="{}")) == "{}"
