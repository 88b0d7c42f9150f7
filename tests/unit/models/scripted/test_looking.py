"""Steps of a scripted model that wait for what the picture shows."""

import base64
import io
from typing import Any

import pytest
from PIL import Image

from service.domain.errors import Invalid
from service.models.scripted.conversation import Request
from service.models.scripted.looking import shows
from service.models.scripted.scenario import Action, Computer, Pixel, Scenario
from service.models.scripted.script import MOST_WAITS, reply

RED, BLUE = (250, 3, 7), (4, 1, 255)
SEES_RED = [Pixel(x=3, y=2, rgb=(255, 0, 0))]
VOCABULARY = "anthropic.20251124"


def picture(colour: tuple[int, int, int], format: str = "PNG", *, urlsafe: bool = False) -> str:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(file, format, **({"lossless": True} if format == "WEBP" else {}))
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    return encode(file.getvalue()).decode()


@pytest.mark.parametrize("format", ["PNG", "WEBP", "JPEG"])
@pytest.mark.parametrize("urlsafe", [False, True])
def test_the_last_picture_counts_in_every_dialects_place_for_it(format: str, urlsafe: bool) -> None:
    red, blue = (picture(colour, format, urlsafe=urlsafe) for colour in (RED, BLUE))
    for before, last, expected in ((blue, red, True), (red, blue, False)):
        bodies: list[dict[str, Any]] = [
            {"messages": [{"source": {"data": before}}, {"content": [{"source": {"data": last}}]}, {"text": "go on"}]},
            {"input": [{"image_url": f"data:image/x;base64,{one}"} for one in (before, last)]},
            {"contents": [{"parts": [{"inlineData": {"data": one}}]} for one in (before, last)]},
        ]
        assert [shows(body, SEES_RED) for body in bodies] == [expected] * 3


def test_no_picture_shows_nothing_and_nothing_is_always_shown() -> None:
    assert not shows({"messages": []}, SEES_RED)
    assert shows({"messages": []}, [])
    assert not shows({"data": picture(RED)}, [Pixel(x=8, y=0, rgb=(255, 0, 0))])


def test_a_broken_picture_is_said() -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        shows({"data": picture(RED)[:40]}, SEES_RED)


def step(word: str, **fields: Any) -> Action:
    return Action(computer=Computer(payloads={VOCABULARY: [{"action": word}]}, **fields))


WAIT = {VOCABULARY: [{"action": "wait"}]}


def asked(scenario: Scenario, colour: tuple[int, int, int], results: list[str]) -> tuple[str, str]:
    """Return word and id of the call that is answered."""
    body = {"data": picture(colour)}
    request = Request(
        model="m", streaming=False, computers=[VOCABULARY], results=results, answers=len(results), body=body
    )
    (use,) = reply(scenario, request).uses
    assert isinstance(use.arguments, dict)
    return str(use.arguments["action"]), use.id


def played(scenario: Scenario, colours: list[tuple[int, int, int]]) -> list[str]:
    words: list[str] = []
    results: list[str] = []
    for colour in colours:
        word, id_ = asked(scenario, colour, results)
        words.append(word)
        results.append(id_)
    return words


def test_a_step_waits_until_it_sees_and_then_goes_on() -> None:
    scenario = Scenario(name="s", steps=[step("one"), step("two", sees=SEES_RED, meanwhile=WAIT), step("three")])
    assert played(scenario, [BLUE, BLUE, BLUE, BLUE, BLUE, RED, BLUE]) == ["one", *["wait"] * 4, "two", "three"]


def test_the_step_before_is_done_again_at_every_third_time() -> None:
    scenario = Scenario(name="s", steps=[step("one"), step("two", sees=SEES_RED, meanwhile=WAIT, again=True)])
    words = played(scenario, [BLUE] * 7 + [RED])
    assert words == ["one", "wait", "wait", "one", "wait", "wait", "one", "two"]


def test_what_never_comes_is_refused() -> None:
    scenario = Scenario(name="s", steps=[step("one"), step("two", sees=SEES_RED, meanwhile=WAIT)])
    with pytest.raises(Invalid, match=f"waited {MOST_WAITS} times"):
        played(scenario, [BLUE] * (MOST_WAITS + 2))


def test_a_step_that_looks_says_what_it_does_meanwhile() -> None:
    with pytest.raises(ValueError, match="meanwhile"):
        step("one", sees=SEES_RED)
