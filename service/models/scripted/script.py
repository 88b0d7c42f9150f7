"""The turn, and what is answered in it: a function of scenario and request alone."""

import hashlib
import json
import re
from collections.abc import Sequence

from service.domain.errors import Invalid
from service.domain.models import TokenUsage
from service.models.scripted import computers, fill, looking, tools
from service.models.scripted.conversation import Reply, Request, Use
from service.models.scripted.opinions import opinion
from service.models.scripted.scenario import Action, Computer, Scenario, Stop

MOST_WAITS = 30
_ID = re.compile(r"(?:call|toolu)_s(\d{1,6})x")


def reply(scenario: Scenario, request: Request) -> Reply:
    """Return the answer of ``scenario`` to ``request``. Raises Invalid: the script has none to this request."""
    at = turn(scenario, request)
    model = request.model.partition("@")[0]
    body = json.dumps([scenario.name, model, at, request.answers, request.results, request.last_user[:2000]])
    id_ = hashlib.sha256(body.encode()).hexdigest()[:20]
    usage = scenario.usage or _usage(at)
    text, uses, stop = _content(scenario, request, at, id_)
    return Reply(
        id_, model, text, uses, usage, scenario.thinking, stop, turn=at, piece_chars=scenario.piece_chars
    )  # fmt: skip


def turn(scenario: Scenario, request: Request) -> int:
    """Return how many steps have been done: by the ids of calls where the agent keeps them, else by counting results.

    Ids outlast a compaction that drops old results.
    """
    known = [int(found.group(1)) for id_ in request.results if (found := _ID.search(id_))]
    if known:
        return max(known) + 1
    left, done = len(request.results), 0
    while left > 0 and (step := scenario.step(done)) is not None:
        left -= max(1, sum(action.say is None for action in step))
        done += 1
    return done + max(left, 0)


def _content(scenario: Scenario, request: Request, at: int, id_: str) -> tuple[str, list[Use], Stop]:
    if not request.acts:
        if (said := opinion(scenario, request)) is not None:
            return said, [], scenario.final_stop
        return (*_spoken(scenario, request), scenario.final_stop) if not scenario.answers else _part(scenario, request)
    if request.last_user.strip() == "Warmup":
        return "Ready.", [], "end"
    if (step := scenario.step(at)) is not None:
        return *(_looked(scenario, step, request, at, id_) or _acted(step, request, at, id_)), "end"
    ending = tools.finish(scenario.final, request, _call_id(at, 0, id_)) if scenario.final_stop == "end" else None
    return scenario.final, [ending] if ending is not None else [], scenario.final_stop


def _spoken(scenario: Scenario, request: Request) -> tuple[str, list[Use]]:
    if request.schema is not None:
        return json.dumps(fill.value(request.schema, request.schema)), []
    return scenario.final, []


def _part(scenario: Scenario, request: Request) -> tuple[str, list[Use], Stop]:
    index = min(request.answers, len(scenario.answers) - 1)
    return scenario.answers[index], [], "length" if index < len(scenario.answers) - 1 else scenario.final_stop


def _looked(
    scenario: Scenario, step: Sequence[Action], request: Request, at: int, id_: str
) -> tuple[str, list[Use]] | None:
    """Return what is done in place of a step whose time has not come; null: it has.

    Its calls count as the step before, so that the next turn is this one again. Raises Invalid: it never comes.
    """
    computer = next((action.computer for action in step if action.computer is not None), None)
    if computer is None or at == 0 or looking.shows(request.body, computer.sees):
        return None
    mark = f"call_s{at - 1:03d}xw"
    waited = len({found.group() for one in request.results if (found := re.match(rf"{mark}\d+", one))})
    if waited >= MOST_WAITS:
        raise Invalid("never_seen", f"step {at} waited {waited} times for what it must see")
    call_id = f"{mark}{waited}x{id_[:8]}"
    before = scenario.step(at - 1)
    if computer.again and waited % 3 == 2 and before is not None:
        return "", [use for n, action in enumerate(before) for use in _uses(action, request, f"{call_id}n{n}")]
    return "", computers.uses(Computer(payloads=computer.meanwhile), request, call_id)


def _acted(step: Sequence[Action], request: Request, at: int, id_: str) -> tuple[str, list[Use]]:
    said = [action.say for action in step if action.say is not None]
    uses = [use for n, action in enumerate(step) for use in _uses(action, request, _call_id(at, n, id_))]
    return "\n".join(said), uses


def _uses(action: Action, request: Request, id_: str) -> list[Use]:
    if action.computer is not None:
        return computers.uses(action.computer, request, id_)
    use = tools.use(action, request, id_) if action.say is None else None
    return [use] if use is not None else []


def _call_id(at: int, n: int, id_: str) -> str:
    return f"call_s{at:03d}x{n}{id_[:12]}"


def _usage(at: int) -> TokenUsage:
    """Figures that differ from turn to turn and kind to kind, so that a mix-up shows."""
    return TokenUsage(
        input_tokens=1000 + 100 * at, cached_input_tokens=200 * at, cache_write_tokens=30 + at,
        output_tokens=50 + at, reasoning_tokens=7,
    )  # fmt: skip
