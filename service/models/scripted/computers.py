"""The computer in a scenario: which vocabulary an agent asks for, and a step's calls in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.domain.errors import Invalid
from service.models.scripted.conversation import Offer, Request, Use
from service.models.scripted.scenario import Computer
from service.models.scripted.values import mapping, objects, text

FUNCTION = "workstead.unified"
"""Vocabulary of an ordinary function with the name ``computer``."""
TOOLSET = "anthropic.computer_toolset_20260801"
_PREVIEW, _BATCHES = "openai.computer_use_preview", "openai.computer"
_GEMINI = ("gemini.3_5", "gemini.legacy")
"""A request does not say which: the model knows."""


def by_function(offers: Sequence[Offer]) -> list[str]:
    return [FUNCTION] if any(offer.name == "computer" and offer.schema for offer in offers) else []


def of_messages(tools: object) -> list[str]:
    """Return the vocabularies that Anthropic's entries of ``tools`` mean."""
    kinds = [text(tool.get("type")) for tool in objects(tools)]
    sets = [f"anthropic.{kind}" for kind in kinds if kind.startswith("computer_toolset_")]
    return sets or [f"anthropic.{kind.removeprefix('computer_')}" for kind in kinds if kind.startswith("computer_")]


def of_responses(tools: object) -> list[str]:
    kinds = [text(tool.get("type")) for tool in objects(tools)]
    return [f"openai.{kind}" for kind in kinds if f"openai.{kind}" in (_PREVIEW, _BATCHES)]


def of_generate(tools: object) -> list[str]:
    return list(_GEMINI) if any("computerUse" in tool or "computer_use" in tool for tool in objects(tools)) else []


def uses(step: Computer, request: Request, id_: str) -> list[Use]:
    """Return the calls of a step. Raises Invalid: the agent asks for a vocabulary that it is not written in, or what it
    sent is not what the step comes after."""
    if step.after is not None and (step.after == "error") is not request.failed:
        raise Invalid("unexpected_result", f"this step comes after {step.after}, the last result is another")
    # Google's older model has a vocabulary of its own, and "2.5" in its name.
    likely = sorted(request.computers, key=lambda name: (name == _GEMINI[1]) is not ("2.5" in request.model))
    vocabulary = next((name for name in likely if name in step.payloads), None)
    if vocabulary is None:
        offered, written = ", ".join(request.computers) or "none", ", ".join(step.payloads)
        raise Invalid("unscripted", f"the step is written in {written}; offered: {offered}")
    calls = _calls(vocabulary, step)
    return [_use(call, f"{id_}c{n}" if n else id_, n == 0, step, vocabulary) for n, call in enumerate(calls)]


def _calls(vocabulary: str, step: Computer) -> list[dict[str, Any]]:
    payloads = step.payloads[vocabulary]
    if vocabulary not in (_PREVIEW, _BATCHES) or not all(
        mapping(p.get("action")) or p.get("actions") for p in payloads
    ):
        return payloads
    actions = [action for payload in payloads for action in _actions(payload)]
    return [{"actions": actions}] if vocabulary == _BATCHES else [{"action": action} for action in actions]


def _actions(payload: Mapping[str, Any]) -> Iterator[Any]:
    yield from objects(payload.get("actions")) or [payload.get("action")]


def _use(call: dict[str, Any], id_: str, first: bool, step: Computer, vocabulary: str) -> Use:
    checks = [check.model_dump() for check in step.checks] if first else []
    if vocabulary in (_PREVIEW, _BATCHES):
        return Use(id_, "computer", call, computer=True, checks=checks)
    if vocabulary == TOOLSET:
        return Use(id_, text(call.get("action")), _without(call, "action"), toolset="computer")
    if vocabulary in _GEMINI:
        decided = {"decision": "require_confirmation", "explanation": checks[0]["message"]} if checks else None
        given = mapping(call.get("args")) | ({"safety_decision": decided} if decided else {})
        return Use(id_, text(call.get("name")), given)
    return Use(id_, "computer", call)


def _without(call: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name != key}
