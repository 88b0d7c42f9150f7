"""Each vocabulary against recorded payloads: ``golden/<name>.json`` has what each means, and what is refused in which words."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.desktop.vocabularies.registry import names, vocabulary
from service.domain.desktop import CoordinateSpace, DesktopAction, Size
from service.domain.errors import Invalid

FOLDER = Path(__file__).parent / "golden"


def _rows(key: str) -> list[Any]:
    return list(_each(key))


def _each(key: str) -> Iterator[Any]:
    for name in names():
        document = json.loads((FOLDER / f"{name}.json").read_text())
        for number, row in enumerate(document[key]):
            yield pytest.param(name, document, row, id=f"{name}-{number}")


def _places(name: str, document: dict[str, Any]) -> tuple[CoordinateSpace, Size]:
    screen, image = (Size(width=document[key][0], height=document[key][1]) for key in ("screen", "image"))
    return vocabulary(name).space(image), screen


def _bare(action: DesktopAction) -> dict[str, Any]:
    return action.model_dump(exclude={"raw"})


@pytest.mark.parametrize(("name", "document", "case"), _rows("cases"))
def test_what_a_payload_means(name: str, document: dict[str, Any], case: dict[str, Any]) -> None:
    reading = vocabulary(name).read(case["payload"], *_places(name, document))
    assert [_bare(a) for a in reading.actions] == [_bare(DesktopAction.model_validate(a)) for a in case["actions"]]
    assert [check.model_dump() for check in reading.checks] == case.get("checks", [])
    assert reading.ending == case.get("ending")
    assert all(action.raw is not None and action.raw.vocabulary == name for action in reading.actions)


@pytest.mark.parametrize(("name", "document", "case"), [row for row in _rows("cases") if row.values[2]["both"]])
def test_how_an_action_is_said(name: str, document: dict[str, Any], case: dict[str, Any]) -> None:
    [action] = case["actions"]
    assert vocabulary(name).write(DesktopAction.model_validate(action), *_places(name, document)) == case["payload"]


@pytest.mark.parametrize(("name", "document", "case"), _rows("errors"))
def test_what_is_refused(name: str, document: dict[str, Any], case: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        vocabulary(name).read(case["payload"], *_places(name, document))
    assert refused.value.type == case["type"]
    assert case["says"] in refused.value.detail
