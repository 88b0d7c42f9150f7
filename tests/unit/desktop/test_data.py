"""Vocabularies as data: one of each style, and what is refused at registration."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.desktop.vocabularies.data import checked, loaded
from service.desktop.vocabularies.registry import MANIFEST, vocabulary_of
from service.domain.desktop import DesktopAction, Size
from service.domain.errors import Invalid

SCREEN = Size(width=1280, height=800)
GRID: dict[str, Any] = {
    "name": "acme.1",
    "coordinates": "thousandths",
    "action": "name",
    "arguments": "args",
    "most_edge": 1024,
    "actions": {
        "tap": {"type": "click", "take": [{"to": "point", "argument": "position"}]},
        "tap_twice": {"type": "click", "set": {"count": 2}, "take": [{"to": "point", "argument": "position"}]},
        "swipe": {
            "type": "drag",
            "take": [{"to": "start", "argument": "from"}, {"to": "end", "argument": "to"}],
        },
        "wheel": {
            "type": "scroll",
            "take": [
                {"to": "way", "argument": "towards", "words": {"North": "up", "South": "down"}},
                {"to": "amount", "argument": "pixels", "scale": 0.01, "default": 300},
                {"to": "point", "argument": "position", "optional": True},
            ],
        },
        "press": {"type": "key", "take": [{"to": "keys", "argument": "chord", "words": {"hyper": "super"}}]},
        "stop": {"ending": "done"},
    },
    "golden": [
        {
            "payload": {"name": "tap", "args": {"position": [500, 500]}},
            "actions": [{"type": "click", "x": 640, "y": 400}],
        },
        {
            "payload": {"name": "tap_twice", "args": {"position": [0, 999]}},
            "actions": [{"type": "click", "count": 2, "x": 0, "y": 799}],
        },
        {
            "payload": {"name": "swipe", "args": {"from": [0, 0], "to": [500, 500]}},
            "actions": [{"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 640, "y": 400}]}],
        },
        {
            "payload": {"name": "wheel", "args": {"towards": "North", "pixels": 200, "position": [500, 500]}},
            "actions": [{"type": "scroll", "dy": -2, "x": 640, "y": 400}],
        },
        {
            "payload": {"name": "wheel", "args": {"towards": "South"}},
            "actions": [{"type": "scroll", "dy": 3}],
            "both": False,
        },
        {
            "payload": {"name": "press", "args": {"chord": ["hyper", "l"]}},
            "actions": [{"type": "key", "keys": ["super", "l"]}],
        },
        {"payload": {"name": "stop"}, "ending": "done"},
    ],
}
FLAT: dict[str, Any] = {
    "name": "acme.flat",
    "batch": "steps",
    "action": "do.kind",
    "actions": {
        "point_and_click": {
            "type": "click",
            "take": [
                {"to": "x", "argument": "do.x"},
                {"to": "y", "argument": "do.y"},
                {"to": "button", "argument": "do.with", "words": {"primary": "left", "secondary": "right"}},
                {"to": "modifiers", "argument": "do.holding", "optional": True},
            ],
        },
        "write": {"type": "type", "take": [{"to": "text", "argument": "do.what"}]},
        "pause": {"type": "wait", "take": [{"to": "seconds", "argument": "do.ms", "scale": 0.001}]},
        "look": {"type": "zoom", "take": [{"to": "region", "argument": "do.box"}]},
        "stroke": {"type": "drag", "take": [{"to": "path", "argument": "do.points", "shape": "object"}]},
    },
    "golden": [
        {
            "payload": {"steps": [{"do": {"kind": "point_and_click", "x": 5, "y": 6, "with": "secondary"}}]},
            "actions": [{"type": "click", "button": "right", "x": 5, "y": 6}],
        },
        {
            "payload": {
                "steps": [
                    {"do": {"kind": "write", "what": "é"}},
                    {"do": {"kind": "pause", "ms": 250}},
                    {"do": {"kind": "look", "box": [0, 0, 10, 10]}},
                    {"do": {"kind": "stroke", "points": [{"x": 1, "y": 2}, [3, 4]]}},
                ]
            },
            "actions": [
                {"type": "type", "text": "é"},
                {"type": "wait", "seconds": 0.25},
                {"type": "zoom", "region": {"x0": 0, "y0": 0, "x1": 10, "y1": 10}},
                {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
            ],
        },
    ],
}


def test_the_documented_one_holds() -> None:
    found = re.search("```json\n(.*?)```", Path("docs/computer-use.md").read_text(), re.DOTALL)
    assert found is not None
    assert checked(json.loads(found.group(1))).name == "acme.1"


@pytest.mark.parametrize("document", [GRID, FLAT])
def test_its_golden_cases_hold(document: dict[str, Any]) -> None:
    assert checked(document).name == document["name"]


@pytest.mark.parametrize(
    ("document", "action"),
    [
        (FLAT, {"type": "wait", "seconds": 0.25}),
        (FLAT, {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 5}]}),
        (FLAT, {"type": "click", "x": 1, "y": 2, "modifiers": ["ctrl"]}),
        (GRID, {"type": "scroll", "dy": 5}),
    ],
)
def test_what_it_writes_reads_as_it_was(document: dict[str, Any], action: dict[str, Any]) -> None:
    spoken = checked(document)
    wanted = DesktopAction.model_validate(action)
    [read] = spoken.read(spoken.write(wanted, spoken.space(SCREEN), SCREEN), spoken.space(SCREEN), SCREEN).actions
    assert read.model_copy(update={"raw": None}) == wanted


@pytest.mark.parametrize(
    "action",
    [
        {"type": "click", "count": 3, "x": 1, "y": 1},
        {"type": "click"},
        {"type": "scroll", "dx": 1},
        {"type": "windows"},
    ],
)
def test_what_it_has_no_word_for(action: dict[str, Any]) -> None:
    spoken = checked(GRID)
    with pytest.raises(Invalid) as refused:
        spoken.write(DesktopAction.model_validate(action), spoken.space(SCREEN), SCREEN)
    assert refused.value.type == "inexpressible"


@pytest.mark.parametrize(
    ("payload", "type"),
    [
        ({"name": "fly"}, "unknown_action"),
        ({}, "bad_action"),
        ({"name": "tap"}, "bad_action"),
        ({"name": "tap", "args": 7}, "bad_action"),
        ({"name": "tap", "args": {"position": [2000, 5]}}, "bad_action"),
        ({"name": "tap", "args": {"position": ["1", 5]}}, "bad_action"),
        ({"name": "wheel", "args": {"towards": "East"}}, "bad_action"),
        ({"name": "wheel", "args": {"towards": "North", "pixels": 1e6}}, "bad_action"),
        ({"name": "press", "args": {}}, "bad_action"),
    ],
)
def test_what_it_refuses(payload: dict[str, Any], type: str) -> None:
    spoken = checked(GRID)
    with pytest.raises(Invalid) as refused:
        spoken.read(payload, spoken.space(SCREEN), SCREEN)
    assert refused.value.type == type


def _changed(document: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    inner = changed
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, "Field required"),
        (_changed(GRID, "name", value="openai.mine"), "names that begin with openai are taken"),
        (_changed(GRID, "name", value="mine"), "name: String should match"),
        (_changed(GRID, "golden", value=GRID["golden"][:-1]), "no golden case for stop"),
        (_changed(GRID, "golden", 0, "actions", 0, "x", value=641), 'golden case 0: it means {"type"'),
        (_changed(GRID, "golden", 0, "actions", value=[]), "it means 1 actions, not 0"),
        (_changed(GRID, "golden", 4, "both", value=True), "both is not true of it"),
        (_changed(GRID, "golden", 6, "ending", value="fail"), "it ends with done, not with fail"),
        (_changed(GRID, "golden", 0, "payload", value={"name": "fly"}), "golden case 0: 'fly' is no action"),
        (_changed(GRID, "actions", "tap", "take", value=[]), "golden case 0"),
        (_changed(GRID, "actions", "tap", "take", 0, "to", value="nose"), "actions.tap.take.0.to"),
        (_changed(GRID, "actions", "tap", "set", value={"type": "move"}), "set has fields of an action"),
        (_changed(GRID, "actions", "tap", "set", value={"nose": 1}), "set has fields of an action"),
        (_changed(GRID, "actions", "stop", "type", value="wait"), "a rule has a type, or an ending"),
        (_changed(GRID, "actions", "wheel", "take", 1, "scale", value=0), "scale"),
        (_changed(GRID, "actions", value={}), "at least 1 item"),
        (_changed(GRID, "extra", value=1), "Extra inputs"),
        (_changed(GRID, "golden", 0, "payload", value={"name": "x" * 300_000}), "at most 262144 characters"),
    ],
)
def test_what_is_refused_at_registration(document: dict[str, Any], says: str) -> None:
    with pytest.raises(Invalid, match="vocabulary: ") as refused:
        checked(document)
    assert refused.value.type == "bad_vocabulary"
    assert says in refused.value.detail


def test_it_goes_by_its_name_or_as_the_manifests() -> None:
    for name in (MANIFEST, "acme.1"):
        assert vocabulary_of(name, GRID).name == "acme.1"
    assert vocabulary_of("openai.computer", GRID).name == "openai.computer"
    with pytest.raises(Invalid, match="no vocabulary is called"):
        vocabulary_of(MANIFEST, None)


def test_the_size_of_its_pictures() -> None:
    assert loaded(GRID).image_size(SCREEN, None) == Size(width=1024, height=640)
    assert loaded(FLAT).image_size(SCREEN, None) == SCREEN


def test_calls_of_its_tools_are_payloads() -> None:
    assert loaded(GRID).payload("tap", {"position": [1, 2]}) == {"name": "tap", "args": {"position": [1, 2]}}
    assert loaded(FLAT).payload("computer", {"steps": []}) == {"steps": []}
