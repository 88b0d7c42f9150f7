"""Reads and writes by a :class:`~service.desktop.vocabularies.document.Document`, and checks one when it is registered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from service.desktop.vocabularies import sizes, takes
from service.desktop.vocabularies.adapter import GRID, Adapter, Payload, alike
from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.document import Document, Golden, Tool
from service.desktop.vocabularies.fields import Fields, act, bad
from service.desktop.vocabularies.place import Place
from service.domain.desktop import MAX_ACTIONS, MOST_SIDE, CoordinateSpace, DesktopAction, Size
from service.domain.errors import Invalid
from service.domain.limits import KIB

MAX_BYTES = 256 * KIB
_OURS = frozenset({"anthropic", "openai", "gemini", "osworld", "workstead"})


class DataVocabulary(Adapter):
    def __init__(self, document: Document) -> None:
        super().__init__(document.name)
        self.document = document

    @property
    def tools(self) -> Sequence[Tool]:
        return self.document.tools

    def payload(self, tool: str, arguments: Mapping[str, Any]) -> Payload:
        """Return the payload that a call of one of its tools is."""
        at = self.document.arguments
        return arguments if at is None else takes.placed({self.document.action: tool, at: dict(arguments)})

    def space(self, image: Size) -> CoordinateSpace:
        return super().space(image) if self.document.coordinates == "pixels" else GRID

    def image_size(self, screen: Size, model: str | None) -> Size:
        del model
        edge = self.document.most_edge or MOST_SIDE
        pixels = self.document.most_pixels or MOST_SIDE**2
        return sizes.fitted(screen, sizes.Bound(edge, pixels, patches=pixels))

    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading:
        place = Place(space, screen)
        readings = [self._one(given, place) for given in self.given(payload)]
        actions = [action for reading in readings for action in reading.actions]
        return Reading(actions, ending=next((r.ending for r in readings if r.ending is not None), None))

    def given(self, payload: Payload) -> Sequence[Payload]:
        if self.document.batch is None:
            return [payload]
        holder, name = takes.holder(payload, self.document.batch)
        return [fields.values for fields in Fields(holder, "computer").objects(name, MAX_ACTIONS)]

    def _one(self, payload: Payload, place: Place) -> Reading:
        holder, name = takes.holder(payload, self.document.action)
        word = Fields(holder, "computer").text(name, most=400)
        rule = self.document.actions.get(word)
        if rule is None:
            raise self.unknown(word, self.document.actions)
        if rule.type is None:
            return Reading((), ending=rule.ending)
        fields = takes.read(rule.take, Fields(self._arguments(payload), word), place)
        return Reading(self.marked([act(rule.type, **{**rule.set, **fields})], payload))

    def _arguments(self, payload: Payload) -> Payload:
        if self.document.arguments is None:
            return payload
        holder, name = takes.holder(payload, self.document.arguments)
        found = holder.get(name)
        if found is not None and not isinstance(found, Mapping):
            raise bad(f"{name} must be an object")
        return cast(Payload, found or {})

    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        said = self._candidates(action, place)
        return next((payload for payload in said if self._means(payload, action, place)), None)

    def _candidates(self, action: DesktopAction, place: Place) -> Iterator[Payload]:
        for word, rule in self.document.actions.items():
            if rule.type is not action.type:
                continue
            words = takes.said(rule.take, action, place)
            if words is None:
                continue
            at = self.document.arguments
            inner = {at: takes.placed(words)} if at is not None and words else words
            one = takes.placed({self.document.action: word, **inner})
            yield one if self.document.batch is None else takes.placed({self.document.batch: [one]})


def loaded(document: Mapping[str, Any]) -> DataVocabulary:
    """Return a vocabulary that was checked before. Raises Invalid ``bad_vocabulary``."""
    try:
        return DataVocabulary(Document.model_validate(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _refused(f"{where}: {first['msg']}") from error


def checked(document: Mapping[str, Any]) -> DataVocabulary:
    """Return the vocabulary if each of its golden cases holds and each of its actions has one.

    Raises Invalid ``bad_vocabulary``.
    """
    if len(json.dumps(document, ensure_ascii=False, default=str)) > MAX_BYTES:
        raise _refused(f"a vocabulary has at most {MAX_BYTES} characters")
    found = loaded(document)
    if found.name.split(".")[0] in _OURS:
        raise _refused(f"names that begin with {found.name.split('.')[0]} are taken")
    for number, case in enumerate(found.document.golden):
        try:
            _holds(found, case)
        except Invalid as error:
            raise _refused(f"golden case {number}: {error.detail}") from error
    unused = set(found.document.actions) - {word for case in found.document.golden for word in _words(found, case)}
    if unused:
        raise _refused(f"no golden case for {', '.join(sorted(unused))}")
    return found


def _holds(found: DataVocabulary, case: Golden) -> None:
    space = found.space(case.image or case.screen)
    reading = found.read(case.payload, space, case.screen)
    if reading.ending != case.ending:
        raise bad(f"it ends with {reading.ending}, not with {case.ending}")
    if len(reading.actions) != len(case.actions):
        raise bad(f"it means {len(reading.actions)} actions, not {len(case.actions)}")
    for read, wanted in zip(reading.actions, case.actions, strict=True):
        if not alike(read, wanted, grain=0):
            raise bad(f"it means {_plain(read)}, not {_plain(wanted)}")
    if case.both and len(case.actions) == 1:
        written = found.write(case.actions[0], space, case.screen)
        if written != case.payload:
            raise bad(f"what it means is written as {json.dumps(written)[:1000]}; both is not true of it")


def _plain(action: DesktopAction) -> str:
    return json.dumps(action.model_dump(mode="json", exclude_defaults=True, exclude={"raw"}))[:1000]


def _words(found: DataVocabulary, case: Golden) -> list[str]:
    return [takes.at(payload, found.document.action) for payload in found.given(case.payload)]


def _refused(detail: str) -> Invalid:
    return Invalid("bad_vocabulary", f"vocabulary: {detail}")
