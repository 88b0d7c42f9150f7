"""What a script sees of a picture is the same in each API's words for it."""

import base64
import io
import random
from typing import Any, Literal

import pytest
from PIL import Image

from service.domain.errors import Invalid
from service.models.scripted.endpoints import find
from service.models.scripted.looking import shows
from service.models.scripted.scenario import Action, Computer, Pixel, Scenario, Step
from service.models.scripted.script import MOST_WAITS, reply
from service.models.scripted.values import mapping

HERE, ELSEWHERE = Pixel(x=40, y=10, rgb=(10, 200, 30)), Pixel(x=3, y=3, rgb=(10, 200, 30))


def noisy(kind: Literal["PNG", "WEBP", "JPEG"]) -> bytes:
    """Return a picture whose base64 has characters of both alphabets; it has a green square."""
    picture = Image.frombytes("RGB", (64, 32), random.Random(7).randbytes(64 * 32 * 3))
    picture.paste((10, 200, 30), (32, 0, 64, 32))
    written = io.BytesIO()
    picture.save(written, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return written.getvalue()


def body(data: str, style: str) -> dict[str, Any]:
    if style == "url":
        return {"input": [{"output": {"image_url": f"data:image/png;base64,{data}"}}]}
    return {"contents": [{"parts": [{"functionResponse": {"parts": [{"inline_data": {"data": data}}]}}]}]}


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
@pytest.mark.parametrize("style", ["url", "gemini"])
def test_both_alphabets_of_base64_are_read(kind: Literal["PNG", "WEBP", "JPEG"], style: str) -> None:
    encode = base64.b64encode if style == "url" else base64.urlsafe_b64encode
    data = encode(noisy(kind)).decode()
    assert set(data) & ({"+", "/"} if style == "url" else {"-", "_"})
    assert shows(body(data, style), [HERE])
    assert not shows(body(data, style), [ELSEWHERE])
    assert not shows(body(data, style), [Pixel(x=4000, y=1, rgb=(0, 0, 0))])


def test_the_last_picture_counts_and_none_shows_nothing() -> None:
    black = io.BytesIO()
    Image.new("RGB", (64, 32)).save(black, "PNG")
    first, last = (base64.b64encode(data).decode() for data in (noisy("PNG"), black.getvalue()))
    both = {"input": [*body(first, "url")["input"], *body(last, "url")["input"]]}
    assert not shows(both, [HERE])
    assert not shows({"input": "nothing"}, [HERE])
    assert shows({"input": "nothing"}, [])


def test_a_picture_that_cannot_be_read_is_said() -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        shows(body("iVBORw0KGgoAAAA=", "url"), [HERE])


def _says(*texts: str, **fields: Any) -> Action:
    return Action(computer=Computer(payloads={VOCABULARY: [{"action": "type", "text": t} for t in texts]}, **fields))


VOCABULARY = "anthropic.20250124"
LOOK = {VOCABULARY: [{"action": "screenshot"}]}


class Watched:
    """A conversation about a screen that a test paints."""

    def __init__(self, **fields: Any) -> None:
        steps: list[Step] = [_says("open"), _says("write", sees=[HERE], meanwhile=LOOK, **fields)]
        self._scenario = Scenario(name="watched", steps=steps)
        self._content: list[dict[str, Any]] = []

    def does(self, rgb: tuple[int, int, int]) -> list[str]:
        """Answer a request whose last picture has this colour."""
        painted = io.BytesIO()
        Image.new("RGB", (64, 32), rgb).save(painted, "PNG")
        source = {"type": "base64", "data": base64.b64encode(painted.getvalue()).decode()}
        content = [*self._content, {"type": "image", "source": source}]
        tools = [{"type": "computer_20250124", "name": "computer"}]
        endpoint = find("/v1/messages")
        assert endpoint is not None
        request = endpoint.read({"tools": tools, "messages": [{"role": "user", "content": content}]})
        uses = reply(self._scenario, request).uses
        self._content += [{"type": "tool_result", "tool_use_id": use.id} for use in uses]
        assert len({one["tool_use_id"] for one in self._content}) == len(self._content)
        return [str(mapping(use.arguments).get("text", "look")) for use in uses]


GREEN, BLACK = (10, 200, 30), (0, 0, 0)


def test_a_step_comes_when_its_picture_does() -> None:
    watched = Watched()
    assert [watched.does(rgb) for rgb in (BLACK, BLACK, BLACK, BLACK, BLACK)] == [["open"], *[["look"]] * 4]
    assert watched.does(GREEN) == ["write"]
    assert watched.does(BLACK) == []


def test_the_step_before_is_done_again_where_that_was_wanted() -> None:
    watched = Watched(again=True)
    assert [watched.does(BLACK)[0] for _ in range(7)] == ["open", "look", "look", "open", "look", "look", "open"]


def test_waiting_has_an_end() -> None:
    watched = Watched()
    assert [watched.does(BLACK)[0] for _ in range(1 + MOST_WAITS)][-1] == "look"
    with pytest.raises(Invalid, match="waited 30 times"):
        watched.does(BLACK)
