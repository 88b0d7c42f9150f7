"""Gemini: the environment, and that each call is answered under its name, confirmed where that was asked for."""

from collections.abc import Mapping
from typing import Any

from service.models.scripted.strict.wrong import check_picture, demand
from service.models.scripted.values import mapping, objects, text

_BROWSER = "ENVIRONMENT_BROWSER"
_ENVIRONMENTS = (_BROWSER, "ENVIRONMENT_MOBILE", "ENVIRONMENT_DESKTOP")
_PICTURES = ("image/png", "image/jpeg", "image/webp")


def check(body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Raises Wrong."""
    del headers
    tools = objects(body.get("tools"))
    found = [mapping(tool["computerUse"]) for tool in tools if "computerUse" in tool]
    if not found:
        return
    environment = found[0].get("environment")
    demand(environment in _ENVIRONMENTS, f"computer_use.environment: {environment!r} is not supported")
    declared = {text(each.get("name")) for tool in tools for each in objects(tool.get("functionDeclarations"))}
    waiting: list[dict[str, Any]] = []
    for content in objects(body.get("contents")):
        parts = objects(content.get("parts"))
        answers = [mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]
        demand(
            [text(call.get("name")) for call in waiting] == [text(answer.get("name")) for answer in answers],
            "the function responses are not those of the function calls of the turn before",
        )
        for call, answer in zip(waiting, answers, strict=True):
            _check_answer(call, answer, own=call.get("name") in declared, in_browser=environment == _BROWSER)
        waiting = [mapping(part["functionCall"]) for part in parts if "functionCall" in part]
    demand(not waiting, "function calls without function responses")


def _check_answer(call: Mapping[str, Any], answer: Mapping[str, Any], *, own: bool, in_browser: bool) -> None:
    name, response = text(call.get("name")), mapping(answer.get("response"))
    demand(response, f"{name}: a function response has a response")
    demand(not call.get("id") or call.get("id") == answer.get("id"), f"{name}: the ids differ")
    decision = mapping(mapping(call.get("args")).get("safety_decision")).get("decision")
    confirmed = response.get("safety_acknowledgement") == "true"
    demand(decision != "require_confirmation" or confirmed, f"{name}: the safety decision was not acknowledged")
    demand(own or not in_browser or response.get("url"), f"{name}: the response of a browser action has a url")
    for part in objects(answer.get("parts")):
        # The API takes both spellings; Google's SDK writes the second inside a function's response.
        picture = mapping(part.get("inlineData") or part.get("inline_data"))
        kind = picture.get("mimeType") or picture.get("mime_type")
        check_picture(kind, picture.get("data"), name, _PICTURES)
