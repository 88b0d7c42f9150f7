"""Work done on a real screen by simulated input: through each provider's wire format, and by a loop outside."""

import base64
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from demo.desktop.check import EXPECTED, cells
from demo.desktop.scenario import scenario
from demo.desktop.scripts import (
    FORM,
    LETTER,
    PRICE_UPDATE,
    SENTENCE,
    SHELL,
    TERMINAL,
    WAIT,
    Step,
    click,
    press,
    write,
)
from service.models.scripted.looking import shows
from service.models.scripted.scenario import Pixel
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab
from tests.journeys.stack import Stack, wait_until

pytestmark = pytest.mark.timeout(600)
PRICES = Path("demo/desktop/tasks/price-update/visible/prices.csv")
FORM_PAGE = Path(__file__).parent.parent / "data" / "order_form.html"
LIMITS = {"wall_clock_s": 400, "disk_bytes": 512 << 20}
VOCABULARIES = {
    "anthropic.20250124": ("anthropic", "claude-haiku-4-5"),
    "anthropic.20251124": ("anthropic", "claude-sonnet-4-6"),
    "anthropic.computer_toolset_20260801": ("anthropic", "claude-opus-5"),
    "openai.computer_use_preview": ("openai", "computer-use-preview"),
    "openai.computer": ("openai", "gpt-5.5"),
    "gemini.3_5": ("gemini", "gemini-3.5-pro"),
    "workstead.unified": ("openai", "some-open-model"),
}
"""Vocabulary → dialect and a model that is asked in it."""
FIRST = "anthropic.20251124"


@pytest.fixture(name="screens", scope="module")
def _screens(there: Lab) -> Lab:
    return there


def price_task(stack: Stack) -> str:
    return make_task(stack, {"prices.csv": PRICES.read_bytes()}, LIMITS, instruction="Update the price.", graders=[])


def start(screens: Lab, vocabulary: str, task: str, steps: Sequence[Step], **settings: Any) -> str:
    """Submit a run whose model does ``steps`` in this vocabulary."""
    dialect, upstream = VOCABULARIES[vocabulary]
    name = vocabulary.replace(".", "-").replace("_", "-").lower()
    model = screens.model(dialect, scenario(name, steps), upstream_id=upstream)
    return submit(screens.stack, task, screens.agent("computer-use@latest", model, **settings))


def artifact(stack: Stack, run_id: str, path: str) -> bytes:
    answer = stack.http.get(f"/v1/runs/{run_id}/artifacts/{path}")
    assert answer.status_code == 200, answer.text
    return answer.content


def cells_of(data: bytes) -> list[list[object]]:
    return cells(io.BytesIO(data))


def check_record(found: Record, vocabulary: str | None) -> None:
    """Check what every run with a screen keeps of what was done there."""
    batches = found.of("desktop.action")
    assert batches
    assert all(batch["payload"].get("after") for batch in batches)
    actions = [action for batch in batches for action in batch["payload"]["actions"]]
    if vocabulary is not None:
        assert {action["raw"]["vocabulary"] for action in actions} == {vocabulary}
    assert any("Calc" in str(batch["payload"]["title"]) for batch in batches)


@pytest.fixture(scope="module")
def together(screens: Lab) -> dict[str, str]:
    """One piece of work through each provider's wire format, all under way at once."""
    form = make_task(screens.stack, {"form.html": FORM_PAGE.read_bytes()}, LIMITS, graders=[])
    letter = make_task(screens.stack, {}, LIMITS, graders=[])
    return {
        "prices": start(screens, FIRST, price_task(screens.stack), PRICE_UPDATE),
        "form": start(screens, "openai.computer", form, FORM),
        "letter": start(screens, "gemini.3_5", letter, LETTER),
    }


def has_the_right_prices(screens: Lab, run_id: str, vocabulary: str) -> None:
    found = record(screens.stack, run_id, 400)
    assert found.run["ended_because"] == "completed", found.run
    assert found.run["attempt"] == 1
    assert cells_of(artifact(screens.stack, run_id, "output/result.xlsx")) == EXPECTED
    check_record(found, vocabulary)


def test_a_price_list_in_calc(screens: Lab, together: dict[str, str]) -> None:
    has_the_right_prices(screens, together["prices"], FIRST)


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", sorted(set(VOCABULARIES) - {FIRST}))
def test_a_price_list_in_every_other_vocabulary(screens: Lab, vocabulary: str) -> None:
    has_the_right_prices(screens, start(screens, vocabulary, price_task(screens.stack), PRICE_UPDATE), vocabulary)


def test_a_form_in_the_browser_and_a_letter_in_writer(screens: Lab, together: dict[str, str]) -> None:
    runs = [together["form"], together["letter"]]
    assert [record(screens.stack, run_id, 400).run["ended_because"] for run_id in runs] == ["completed", "completed"]
    sent = json.loads(artifact(screens.stack, runs[0], "output/order.json"))
    assert sent == {"name": "Ada", "count": "3", "gift": "on", "size": "large"}
    with zipfile.ZipFile(io.BytesIO(artifact(screens.stack, runs[1], "output/letter.odt"))) as document:
        assert SENTENCE in document.read("content.xml").decode()


def drive(stack: Stack, run_id: str, steps: Sequence[Step]) -> Mapping[str, Any]:
    """Do the steps from outside, as a client does; return the last answer."""
    wait_until("the run is ready", lambda: any(e["type"] == "run.ready" for e in stack.events(run_id)), 60, 0.3)
    headers = {"Workstead-Lease": stack.call("POST", f"/v1/runs/{run_id}/claim", json={"holder": "a loop"})["lease"]}

    def act(actions: Sequence[dict[str, Any]]) -> dict[str, Any]:
        body = {"actions": list(actions), "settle": {"quiet_s": 0.6}}
        done = stack.call("POST", f"/v1/runs/{run_id}/desktop/actions", json=body, headers=headers, timeout=120)
        assert [r["error"] for r in done["results"]] == [None] * len(actions), done
        return dict(done)

    last: dict[str, Any] = {}
    for n, step in enumerate(steps):
        waits = 0
        while step.sees and not _sees(last, step):
            assert waits < 30, f"step {n} never sees {step.sees}"
            last = act(steps[n - 1].actions if step.again and waits % 3 == 2 else [WAIT])
            waits += 1
        last = act(step.actions)
    stack.call("POST", f"/v1/runs/{run_id}/finish", json={"status": "success"}, headers=headers)
    return last


def _sees(last: Mapping[str, Any], step: Step) -> bool:
    picture = {"data": last["screenshot"]["data_base64"]}
    return shows(picture, [Pixel(x=x, y=y, rgb=(r, g, b)) for x, y, r, g, b in step.sees])


def remote_agent(stack: Stack) -> str:
    body = {"scaffold": "remote@latest", "settings": {"surface": "desktop"}}
    return str(stack.call("POST", "/v1/agents", json=body)["id"])


@pytest.mark.slow
def test_a_price_list_by_a_loop_outside(screens: Lab) -> None:
    stack = screens.stack
    run_id = submit(stack, price_task(stack), remote_agent(stack))
    last = drive(stack, run_id, PRICE_UPDATE)
    picture = Image.open(io.BytesIO(base64.b64decode(last["screenshot"]["data_base64"])))
    assert picture.size == (1280, 800)
    assert "result.xlsx" in last["state"]["title"]
    found = record(stack, run_id, 400)
    assert found.run["ended_because"] == "completed"
    assert cells_of(artifact(stack, run_id, "output/result.xlsx")) == EXPECTED
    check_record(found, None)


LETTERS = "abcdefghijkl"


@pytest.mark.slow
def test_kill_9_does_nothing_on_the_screen_twice(screens: Lab) -> None:
    """Each letter is a batch of its own; one that a process died over may be missing, none is there twice."""
    stack = screens.stack
    steps = [
        Step([click(*TERMINAL)]),
        Step([write("cat > output/letters"), press("Return")], SHELL),
        *(Step([write(letter)]) for letter in LETTERS),
        Step([press("Return"), press("ctrl", "d")]),
        Step([WAIT]),
    ]
    task = make_task(stack, {}, LIMITS, graders=[])
    run_id = start(screens, FIRST, task, steps)

    def typed(after: int) -> bool:
        said = stack.events(run_id)
        ended = [e["payload"] for e in said if e["type"] == "attempt.ended"]
        if ended:
            pytest.fail("\n".join(str((e["type"], e["payload"]))[:2_000] for e in said[-12:]))
        return sum(e["type"] == "desktop.action" for e in said) >= after

    for process, after in (("worker", 7), ("gateway", 9), ("worker", 11), ("api", 13)):
        wait_until(f"{after} batches", partial(typed, after), 300, 0.3)
        stack.kill(process)
    found = record(stack, run_id, 400)
    assert found.run["ended_because"] == "completed", [e["payload"] for e in found.of("agent.final")]
    assert found.run["attempt"] == 1
    batches = [e["payload"] for e in found.of("desktop.action")]
    assert len({batch["id"] for batch in batches}) == len(batches)
    lost = [batch for batch in batches if batch.get("interrupted")]
    text = artifact(stack, run_id, "output/letters").decode().strip()
    assert text == "".join(letter for letter in LETTERS if letter in text), text
    assert len(LETTERS) - len(text) <= len(lost) <= 2
