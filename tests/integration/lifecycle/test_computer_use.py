"""Our loop on a screen from submission to grade: a real store and the official SDKs, a stand-in for deskd."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.desktop.desktops import Desktops
from service.desktop.vocabularies.registry import UNIFIED, vocabulary
from service.domain.agents import AgentSpec
from service.domain.desktop import ActionType, DesktopAction, SafetyCheck, Size
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event
from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode
from service.lifecycle.choosing import check_agent
from service.lifecycle.context import Context
from service.models.scripted.scenario import Action, Computer, FileText, Scenario, ToolCall
from service.store import blob_refs, confirmations, hosts, runs
from service.store.rows import Page
from service.store.rows_desktop import ConfirmationRow
from service.testing import fake_deskd
from tests.integration.lifecycle.loops import Workshop
from tests.integration.lifecycle.stage import RIGHT, Stage, until
from tests.integration.lifecycle.test_takeover import DieAt, Died, claim_and_step, take_over

PROGRAM = (sys.executable, "-I", fake_deskd.__file__)
SCREEN = Size(width=1280, height=800)
SPOKEN = {"anthropic": "anthropic.20251124", "openai": "openai.computer", "gemini": "gemini.3_5"}
ANSWERS = Action(write=FileText(path="output/answers.json", text=json.dumps(RIGHT)))


def done(*actions: DesktopAction, **fields: Any) -> Action:
    """The actions, one answer, in each vocabulary."""
    spoken: dict[str, list[dict[str, Any]]] = {}
    for name in SPOKEN.values():
        words = vocabulary(name)
        space = words.space(SCREEN)
        spoken[name] = [dict(words.write(action, space, SCREEN)) for action in actions]
    return Action(computer=Computer(payloads=spoken, **fields))


def typed(text: str) -> DesktopAction:
    return DesktopAction(type=ActionType.TYPE, text=text)


def plain(*actions: dict[str, Any]) -> Action:
    return Action(call=ToolCall(name="computer", arguments={"actions": list(actions)}))


def strange(word: str) -> Action:
    return Action(computer=Computer(payloads={SPOKEN["anthropic"]: [{"action": word}]}))


CLICK = DesktopAction(type=ActionType.CLICK, x=640, y=400)
LOOK = DesktopAction(type=ActionType.SCREENSHOT)
CHECK = SafetyCheck(id="sc_1", code="malicious_instructions", message="The page asks for money.")
LETTERS = [done(typed(letter)) for letter in "abc"]
SCENARIOS = [
    Scenario(name="work", steps=[done(LOOK), done(CLICK), done(typed("41")), ANSWERS], final="Added up ✓"),
    Scenario(name="letters", steps=[*LETTERS, ANSWERS], final="Typed ✓"),
    Scenario(name="plain", steps=[plain({"type": "click", "x": 9, "y": 9}, {"type": "type", "text": "41"}), ANSWERS]),
    Scenario(name="strange", steps=[strange("levitate"), done(typed("!die"), after="error"), done(typed("x"), after="error")]),
    Scenario(name="outside", steps=[plain({"type": "click", "x": 5000, "y": 1}), plain({"type": "key", "keys": ["no_such_key"]}, {"type": "wait"})]),
    Scenario(name="asks", steps=[done(CLICK, checks=[CHECK]), done(typed("paid")), ANSWERS], final="Paid."),
    Scenario(name="checked-nonsense", steps=[Action(computer=Computer(
        payloads={SPOKEN["openai"]: [{"actions": [{"type": "levitate"}]}]}, checks=[CHECK])), done(typed("x"), after="error")]),
    Scenario(name="where", steps=[done(CLICK), Action(computer=Computer(payloads={SPOKEN["anthropic"]: [{"action": "cursor_position"}]}))]),
    Scenario(name="dead", steps=[done(typed("!die"))], endless=True),
    Scenario(name="turns", steps=[done(CLICK)], endless=True),
]  # fmt: skip


@pytest.fixture
async def workshop(stage: Stage, tmp_path: Path) -> AsyncIterator[Workshop]:
    stage.machine.images["desktop"] = "sha256:" + "2" * 64
    stage.host = replace(stage.host, environments=(*stage.host.environments, "desktop"))
    async with stage.db.transaction() as tx:
        await hosts.register(tx, stage.host)
    async with Workshop.open(stage, tmp_path, *SCENARIOS) as made:
        yield made


@pytest.fixture
async def desktops() -> AsyncIterator[list[Desktops]]:
    made: list[Desktops] = []
    yield made
    for one in made:
        await one.close()


@pytest.fixture
def worker(workshop: Workshop, desktops: list[Desktops]) -> "Worker":
    return Worker(workshop, desktops)


class Worker:
    """Makes contexts of worker processes with a screen program."""

    def __init__(self, workshop: Workshop, desktops: list[Desktops]) -> None:
        self.workshop, self._desktops = workshop, desktops

    def context(self, program: tuple[str, ...] = PROGRAM, **changes: Any) -> Context:
        self._desktops.append(Desktops(program))
        return self.workshop.context(desktops=self._desktops[-1], **changes)

    async def start(self, scenario: str, dialect: str = "anthropic", **settings: Any) -> str:
        stage = self.workshop.stage
        given = {"vocabulary": SPOKEN[dialect], "tools": ["write_file"], **settings}
        agent = await self.workshop.agent("computer_use", scenario, dialect, **given)
        return (await stage.submit(await stage.task(), agent, max_attempts=2)).id


def batches(events: list[Event]) -> list[dict[str, Any]]:
    return [event.payload for event in events if event.type == "desktop.action"]


@pytest.mark.parametrize("dialect", SPOKEN)
async def test_it_works_on_the_screen_and_is_graded(worker: Worker, dialect: str) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("work", dialect)
    await stage.work(worker.context(), run_id)
    await stage.grade_all()
    row = await stage.row(run_id)
    assert (row.outcome, row.score, row.ended_because) == (Outcome.GRADED, 2.0, EndedBecause.COMPLETED)
    assert (row.environment, row.limits.memory_bytes, row.turns) == ("desktop", 4 << 30, 5)
    first, look, click, type_ = batches(await stage.events(run_id))
    assert [a["type"] for b in (first, look, click, type_) for a in b["actions"]] == ["screenshot", "click", "type"]
    assert click["actions"][0]["raw"]["vocabulary"] == SPOKEN[dialect]
    assert (click["actions"][0]["x"], click["actions"][0]["y"]) in ((640, 400), (639, 399), (640, 399), (639, 400))
    assert type_["title"].endswith("41")
    # What was on the screen before: taken for what acts, the last known one for what only looks.
    assert look["before"] == first["after"]
    assert click["before"]["sha256"] == look["after"]["sha256"] != click["after"]["sha256"]
    (attempt,) = await stage.attempts(run_id)
    assert attempt.provenance["surface"] == "desktop"
    assert (attempt.provenance["environment_asked"], attempt.provenance["vocabulary"]) == ("base", SPOKEN[dialect])
    async with stage.db.reading() as tx:
        size = await blob_refs.owned_size(tx, blob_refs.PICTURE, run_id, type_["after"]["sha256"])
    assert size == type_["after"]["size_bytes"] == len(stage.blobs.read_bytes(type_["after"]["sha256"]))
    calls = {e.payload["id"] for e in await stage.events(run_id, "tool.call")}
    assert (
        {b["id"] for b in (look, click, type_)}
        <= calls
        == {e.payload["id"] for e in await stage.events(run_id, "tool.result")}
    )
    digests = {b["after"]["sha256"] for b in (first, look, click, type_)}
    async with stage.db.transaction() as tx:
        assert await blob_refs.referenced(tx, digests) == digests
        await runs.delete(tx, run_id)
        assert await blob_refs.referenced(tx, digests) == set()


async def test_any_model_works_by_a_plain_tool(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("plain", "openai", vocabulary=UNIFIED, chat=True)
    await stage.work(worker.context(), run_id)
    _, both = batches(await stage.events(run_id))
    assert ([a["type"] for a in both["actions"]], both["title"]) == (["click", "type"], "41")
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED


async def test_only_the_newest_pictures_are_sent(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("letters", history_pictures=2)
    await stage.work(worker.context(), run_id)
    sent = [exchange.body.count(b'"image/') for exchange in worker.workshop.provider.requests()]
    assert sent == [1, 2, 2, 2, 2]
    assert len(batches(await stage.events(run_id))) == 4


@pytest.mark.fault(111)
@pytest.mark.parametrize(
    ("point", "after"),
    [("loop.acted", 4), ("loop.recorded", 3), ("desktop.performed", 0), ("desktop.performed", 2),
     *(pytest.param(point, n, marks=pytest.mark.slow) for point in ("loop.acted", "loop.recorded") for n in range(16)
       if (point, n) not in (("loop.acted", 4), ("loop.recorded", 3)))],
)  # fmt: skip
async def test_killed_anywhere_nothing_is_done_twice(worker: Worker, point: str, after: int) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("letters")
    crash = DieAt(point=point, after=after)
    with pytest.raises((Died, BaseExceptionGroup)):
        await claim_and_step(stage, worker.context(crash=crash))
    await stage.steps(worker.context(), await take_over(stage))
    await stage.grade_all()
    row = await stage.row(run_id)
    assert (row.outcome, row.turns, row.tool_calls) == (Outcome.GRADED, 5, 4)
    found = batches(await stage.events(run_id))
    assert [b["actions"][0]["text"] for b in found if b["actions"]] == ["a", "b", "c"]
    text = found[-1]["title"]
    assert len(set(text)) == len(text) >= 2, text  # nothing twice; what was interrupted before it began is missing
    lost = [b for b in found if b.get("interrupted")]
    assert len(lost) <= 1
    assert all(b["after"] is not None for b in lost)
    if point == "desktop.performed":
        assert len(lost) == 1


async def test_what_the_model_gets_wrong_is_told_to_it(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("outside", "openai", vocabulary=UNIFIED, chat=True)
    await stage.work(worker.context(), run_id)
    out, key = [e.payload for e in await stage.events(run_id, "tool.result")]
    assert (out["is_error"], "1280" in out["output"]) == (True, True)
    assert key["output"].startswith("Action 1 (key) failed: unknown_key")
    assert "what comes after it was not done" in key["output"]
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED


async def test_unknown_actions_and_a_helper_that_dies_are_results(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("strange")
    await stage.work(worker.context(), run_id)
    levitate, die, last = [e.payload for e in await stage.events(run_id, "tool.result")]
    assert "'levitate' is no action" in levitate["output"]
    assert "desktop_lost" in die["output"]
    assert last["is_error"] is False
    assert batches(await stage.events(run_id))[-1]["title"] == "x"
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED


async def test_a_check_of_what_cannot_be_read_is_answered(worker: Worker) -> None:
    """The provider refuses an answer that leaves a check open, and would end the run."""
    stage, run_id = worker.workshop.stage, await worker.start("checked-nonsense", "openai")
    await stage.work(worker.context(), run_id)
    levitate, last = [e.payload for e in await stage.events(run_id, "tool.result")]
    assert (levitate["is_error"], last["is_error"]) == (True, False)
    assert [e.payload["state"] for e in await stage.events(run_id, "confirmation")] == ["acknowledged"]
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED


async def test_the_pointers_place_is_told_in_the_models_picture(worker: Worker) -> None:
    """This model is sent half of a large screen's size; it aims at, and hears of, places in that picture."""
    large = {"width": 2560, "height": 1600}
    stage, run_id = worker.workshop.stage, await worker.start("where", screen=large)
    await stage.work(worker.context(), run_id)
    _, click, where = batches(await stage.events(run_id))
    sent = click["after"]
    assert sent["width"] < large["width"]
    place = (click["actions"][0]["x"], click["actions"][0]["y"])
    assert abs(place[0] - 640 * large["width"] / sent["width"]) <= 2
    assert where["results"][0]["text"] == f"{place[0]},{place[1]}"
    _, told = [e.payload["output"] for e in await stage.events(run_id, "tool.result")]
    assert told == "640,400"


async def test_a_desktop_that_never_answers_ends_it(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("dead")
    await stage.work(worker.context(), run_id)
    (final,) = await stage.events(run_id, "agent.final")
    assert (final.payload["status"], final.payload["reason"]) == ("error", "desktop_lost")
    row = await stage.row(run_id)
    assert (row.ended_because, row.attempt) == (EndedBecause.SCAFFOLD_ERROR, 1)  # the sandbox's word: never ours


async def test_turns_end(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("turns", max_turns=3)
    await stage.work(worker.context(), run_id)
    (final,) = await stage.events(run_id, "agent.final")
    assert (final.payload["status"], final.payload["reason"]) == ("limit", "max_turns")


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
async def test_checks_are_acknowledged_by_policy_and_recorded(worker: Worker, dialect: str) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("asks", dialect)
    await stage.work(worker.context(), run_id)
    (said,) = await stage.events(run_id, "confirmation")
    assert (said.payload["state"], said.payload["by"]) == ("acknowledged", "policy")
    assert said.payload["checks"][0]["message"] == CHECK.message
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED
    answered = [e.body for e in worker.workshop.provider.requests() if b"acknowledge" in e.body]
    assert answered, "the provider is told"


async def test_checks_that_are_denied_end_the_run_and_it_is_graded(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("asks", "openai", confirm="deny")
    await stage.work(worker.context(), run_id)
    await stage.grade_all()
    row = await stage.row(run_id)
    assert (row.ended_because, row.outcome) == (EndedBecause.SAFETY_DENIED, Outcome.GRADED)
    assert [b["actions"] for b in batches(await stage.events(run_id))] == [[]]  # the first picture, and no click
    (said,) = await stage.events(run_id, "confirmation")
    assert said.payload["state"] == "denied"


async def asked(stage: Stage, run_id: str) -> ConfirmationRow:
    await until(lambda: stage.is_in(run_id, Phase.AWAITING_CONFIRMATION))
    async with stage.db.reading() as tx:
        (row,) = (await confirmations.page_of_run(tx, run_id, Page())).items
    return row


@pytest.mark.parametrize("acknowledge", [True, False])
async def test_a_person_decides(worker: Worker, acknowledge: bool) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("asks", "openai", confirm="human")
    working = asyncio.create_task(stage.work(worker.context(), run_id))
    row = await asked(stage, run_id)
    assert (row.state, row.checks[0]["id"]) == ("pending", CHECK.id)
    async with stage.db.transaction() as tx:
        with pytest.raises(NotFound):
            await confirmations.decide(tx, run_id, "cnf_other", acknowledge=True, by="tok_1")
        decided = await confirmations.decide(tx, run_id, row.id, acknowledge=acknowledge, by="tok_1")
        assert await confirmations.decide(tx, run_id, row.id, acknowledge=acknowledge, by="tok_2") == decided
        with pytest.raises(Conflict, match="before"):
            await confirmations.decide(tx, run_id, row.id, acknowledge=not acknowledge, by="tok_1")
    await working
    cause = EndedBecause.COMPLETED if acknowledge else EndedBecause.SAFETY_DENIED
    assert (await stage.row(run_id)).ended_because is cause
    states = [(e.payload["state"], e.payload["by"]) for e in await stage.events(run_id, "confirmation")]
    assert states == [("pending", None), (decided.state, "tok_1")]
    phases = [e.payload["phase"] for e in await stage.events(run_id, "run.phase")]
    assert phases.count("awaiting_confirmation") == 1
    assert phases[phases.index("awaiting_confirmation") + 1] == "running"


@pytest.mark.fault(111)
async def test_a_successor_waits_for_the_same_decision(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("asks", "openai", confirm="human")
    first = asyncio.create_task(claim_and_step(stage, worker.context()))
    row = await asked(stage, run_id)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await stage.is_in(run_id, Phase.AWAITING_CONFIRMATION)
    second = asyncio.create_task(stage.steps(worker.context(), await take_over(stage)))
    async with stage.db.transaction() as tx:
        await confirmations.decide(tx, run_id, row.id, acknowledge=True, by="tok_1")
    await second
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED
    assert len(await stage.events(run_id, "confirmation")) == 2


async def test_a_run_that_waits_for_a_person_can_be_stopped(worker: Worker) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("asks", "openai", confirm="human")
    working = asyncio.create_task(stage.work(worker.context(), run_id))
    row = await asked(stage, run_id)
    await stage.stop(run_id, StopMode.COLLECT)
    await working
    assert (await stage.row(run_id)).ended_because is EndedBecause.STOPPED
    async with stage.db.transaction() as tx:
        with pytest.raises(Conflict, match="does not wait"):
            await confirmations.decide(tx, run_id, row.id, acknowledge=True, by="tok_1")


async def test_an_image_without_a_screen_is_said_and_not_tried_again(worker: Worker, tmp_path: Path) -> None:
    stage, run_id = worker.workshop.stage, await worker.start("work")
    await stage.work(worker.context((sys.executable, "-I", str(tmp_path / "none.py"))), run_id)
    row = await stage.row(run_id)
    assert (row.ended_because, row.attempt, row.started_at) == (EndedBecause.PROVISION_FAILED, 1, None)
    (attempt,) = await stage.attempts(run_id)
    assert attempt.evidence is not None
    assert attempt.evidence["type"] == "no_desktop_in_image"
    assert stage.machine.sandboxes == {}


@pytest.mark.parametrize(
    ("kind", "surface", "refused"),
    [("command", "desktop", True), ("tool_agent", "browser", True), ("computer_use", "shell", True),
     ("computer_use", "browser", False), ("remote", "desktop", False), ("person", "browser", False)],
)  # fmt: skip
async def test_who_can_use_a_screen(worker: Worker, kind: str, surface: str, refused: bool) -> None:
    stage = worker.workshop.stage
    await stage.agent(f"a-{kind}", kind=kind)
    spec = AgentSpec(scaffold=f"a-{kind}@1", settings={"surface": surface})
    async with stage.db.reading() as tx:
        if not refused:
            await check_agent(tx, stage.project.id, spec)
            return
        with pytest.raises(Invalid) as error:
            await check_agent(tx, stage.project.id, spec)
    assert error.value.type == "surface_not_supported"
