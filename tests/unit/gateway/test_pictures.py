"""Pictures in recorded requests: told apart by their bytes, but not where they show a screen."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from service.domain.events import Event, EventType
from service.domain.models import Dialect
from service.gateway.cassettes.normal import Normaliser
from service.gateway.cassettes.pictures import WORD, shows_a_screen
from service.gateway.cassettes.projection import canonical

Json = dict[str, Any]
DATA = "aGVsbG8gMjAyNi0xMS0zMA=="


def anthropic(data: str, tools: list[Json]) -> Json:
    source = {"type": "base64", "media_type": "image/png", "data": data}
    content = [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": source}]}]
    return {"messages": [{"role": "user", "content": content}], "tools": tools}


def responses(data: str, tools: list[Json]) -> Json:
    output = {"type": "computer_screenshot", "image_url": f"data:image/webp;base64,{data}"}
    return {"input": [{"type": "computer_call_output", "call_id": "c1", "output": output}], "tools": tools}


def chat(data: str, tools: list[Json]) -> Json:
    part = {"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{data}"}}
    return {"messages": [{"role": "user", "content": [part]}], "tools": tools}


def gemini(data: str, tools: list[Json]) -> Json:
    inside = {"name": "click", "parts": [{"inline_data": {"mime_type": "image/png", "data": data}}]}
    parts = [{"functionResponse": inside}, {"inlineData": {"mimeType": "image/png", "data": data}}]
    return {"contents": [{"role": "user", "parts": parts}], "tools": tools}


FUNCTION: Json = {"type": "function", "function": {"name": "computer"}}
BODIES: list[tuple[Dialect, Any, Json]] = [
    (Dialect.ANTHROPIC, anthropic, {"type": "computer_20251124", "name": "computer"}),
    (Dialect.ANTHROPIC, anthropic, {"type": "computer_toolset_20260801"}),
    (Dialect.ANTHROPIC, anthropic, {"name": "computer", "input_schema": {}}),
    (Dialect.OPENAI, responses, {"type": "computer"}),
    (Dialect.OPENAI, responses, {"type": "computer_use_preview"}),
    (Dialect.OPENAI, responses, {"type": "function", "name": "computer"}),
    (Dialect.OPENAI, chat, FUNCTION),
    (Dialect.GEMINI, gemini, {"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}}),
    (Dialect.GEMINI, gemini, {"functionDeclarations": [{"name": "computer"}]}),
]


@pytest.mark.parametrize(("dialect", "body", "tool"), BODIES)
def test_pixels_of_a_screen_do_not_count(dialect: Dialect, body: Any, tool: Json) -> None:
    first, second = body(DATA, [tool]), body("b3RoZXI=", [tool])
    kept = copy.deepcopy(first)
    normal = Normaliser().body(dialect, first)
    assert normal == Normaliser().body(dialect, second)
    assert WORD in str(normal)
    assert DATA not in str(normal)
    assert first == kept


@pytest.mark.parametrize("body", [anthropic, responses, chat, gemini])
def test_other_pictures_count_by_their_bytes(body: Any) -> None:
    tools: list[Json] = [{"name": "bash"}, {"type": "function", "function": {"name": "view_image"}}]
    one, same, other = (Normaliser().body(Dialect.OPENAI, body(data, tools)) for data in (DATA, DATA, "b3RoZXI="))
    assert one == same != other
    assert DATA not in str(one)


def test_pictures_of_a_run_with_a_screen_show_it_whatever_its_tools_are() -> None:
    tools: list[Json] = [{"name": "tap"}]
    one, other = (Normaliser(screen=True).body(Dialect.OPENAI, chat(data, tools)) for data in (DATA, "b3RoZXI="))
    assert one == other


def test_where_a_picture_is_still_counts() -> None:
    tools: list[Json] = [{"type": "computer"}]
    with_one, without = responses(DATA, tools), responses(DATA, tools)
    del without["input"][0]["output"]["image_url"]
    normal = Normaliser()
    assert normal.body(Dialect.OPENAI, with_one) != normal.body(Dialect.OPENAI, without)


@pytest.mark.parametrize("tools", [None, "computer", [], ["computer"], [{"type": 7}], [{"function": "computer"}]])
def test_tools_of_another_shape_show_no_screen(tools: Any) -> None:
    assert not shows_a_screen({"tools": tools})


def test_data_that_is_no_picture_stays() -> None:
    body: Json = {
        "data": "x",
        "a": {"media_type": "text/plain", "data": "y"},
        "b": {"data": [1]},
        "c": "data:text/plain,z",
    }
    assert Normaliser().body(Dialect.OPENAI, body) == body


def test_a_story_on_a_screen_is_told_without_pixels() -> None:
    def story(sha: str, title: str = "Calc") -> list[Json]:
        after = {"sha256": sha, "format": "webp", "width": 1280, "height": 800, "size_bytes": len(sha)}
        shown = {"images": [{"media_type": "image/webp", "data": f'picture:{{"sha256":"{sha}"}}'}]}
        payload: Json = {"id": "b1", "after": after, "title": title, "took_s": len(sha), "value": shown}
        return canonical([Event("run_1", 1, 1, EventType.DESKTOP_ACTION, datetime.now(UTC), payload)])

    assert story("a" * 64) == story("b" * 63)
    assert story("a" * 64) != story("a" * 64, title="Writer")
    assert story("a" * 64)[0]["after"] == {"format": "webp", "width": 1280, "height": 800}
