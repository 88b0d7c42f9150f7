"""An evaluation watched to its end, or until nothing of it goes on by itself any more."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, GRADED, UNGRADED, emit, line, out
from workstead.cli.watch import PATIENCE_S, note
from workstead.errors import Disconnected
from workstead.models_evaluations import Evaluation, EvaluationAgent
from workstead.terminal import one_line

HELD_BACK = 4
"""Exit code: a stop rule or a budget keeps what is left from beginning."""
JUDGES = "judges_budget"
RULES = frozenset({"stop_rule", "budget", JUDGES})
"""Reasons of holds that no time takes away."""
SUMMED_S = 15.0
"""How long the last dollars are waited for."""
_IDLE = ("queued", "held", "done")


async def follow(client: AsyncClient, evaluation_id: str, *, as_json: bool = False) -> int:
    """Watch until it ends, and return the exit code. Raises Problem; Disconnected when the service stays away."""
    shown = _Shown(quiet=as_json)
    try:
        with shown:
            found = await _until(client, evaluation_id, shown, is_over)
            if not (found.summed or is_held_back(found) or found.state == "draft"):
                # The watchdog sums the last dollars a moment after the last run.
                late = asyncio.get_running_loop().time() + SUMMED_S
                found = await _until(client, evaluation_id, shown, lambda one: one.summed or _passed(late))
    except asyncio.CancelledError:
        note(go_on(evaluation_id))
        raise
    if as_json:
        emit(found)
    else:
        end(found)
    return exit_code(found)


async def _until(
    client: AsyncClient, evaluation_id: str, shown: "_Shown", enough: Callable[[Evaluation], bool]
) -> Evaluation:
    loop = asyncio.get_running_loop()
    last = loop.time()

    def heard(found: Evaluation) -> None:
        nonlocal last
        last = loop.time()
        shown.take(found)

    while True:
        try:
            return await client.evaluations.wait(evaluation_id, heard, enough)
        except Disconnected:
            if loop.time() - last > PATIENCE_S:
                raise
            await asyncio.sleep(2)


def _passed(when: float) -> bool:
    return asyncio.get_running_loop().time() > when


def go_on(evaluation_id: str) -> str:
    return f"the evaluation goes on: `workstead eval watch {evaluation_id}` follows it, `eval stop` stops it"


def is_over(found: Evaluation) -> bool:
    return not found.under_way or is_held_back(found)


def is_held_back(found: Evaluation) -> bool:
    """Tell whether a rule or a budget holds something, and all that is not done is held by people, rules or budgets."""
    reasons = _reasons(found)
    if found.state != "running" or not reasons & RULES:
        return False
    judged = ("grading",) if JUDGES in reasons else ()
    if found.total - found.of_phase(*_IDLE, *judged) > 0:
        return False
    whole = any(not hold.get("agent_id") and hold.get("reason") != JUDGES for hold in found.holds)
    left = [agent for agent in found.agents if agent.total > sum(_of(agent, phase) for phase in ("done", *judged))]
    return bool(left or found.of_phase(*judged)) and (whole or all(agent.hold for agent in left))


def _reasons(found: Evaluation) -> set[str]:
    of_agents = (agent.hold for agent in found.agents if agent.hold)
    return {str(hold.get("reason", "")) for hold in (*found.holds, *of_agents)}


def exit_code(found: Evaluation) -> int:
    """0: all graded; 3: some not; 4: held back; 1: it did not start."""
    if found.state == "draft":
        return FAILED
    if is_held_back(found):
        return HELD_BACK
    return GRADED if found.graded >= found.wanted else UNGRADED


def end(found: Evaluation) -> None:
    """Say how it ended."""
    if found.state == "draft":
        for said in preflight_problems(found):
            line(said, "red")
        line(f"{found.id}: the preflight found something; nothing was started", "red")
        return
    out.print(progress(found))
    for said in holds(found):
        line(said, "yellow")


def preflight_problems(found: Evaluation) -> Iterator[str]:
    """Yield what the preflight found, by agent, in the words of whoever refused."""
    result: dict[str, Any] = found.preflight or {}
    labels = {agent.id: agent.label for agent in found.agents}
    for agent, seen in result.get("agents", {}).items():
        for problem in seen.get("problems", ()):
            yield f"{labels.get(agent, agent)}: {problem.get('what')}: {problem.get('detail')}"
    for key, judge in result.get("judges", {}).items():
        if not judge.get("ok"):
            yield f"judge {key}: {judge.get('detail')}"
    yield from map(str, result.get("notes", ()))


def holds(found: Evaluation) -> Iterator[str]:
    for hold in found.holds:
        who = hold.get("label") or hold.get("agent") or hold.get("agent_id") or hold.get("model") or "the evaluation"
        yield f"held: {who}: {hold.get('reason')}: {hold.get('detail') or ''}"


def progress(found: Evaluation) -> Table:
    """Return a row per agent: how many are done, graded, at work, waiting, and why nothing begins."""
    table = Table(box=None, pad_edge=False)
    for column in ("agent", "runs", "done", "graded", "at work", "queued", "held", "why"):
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    for agent in found.agents:
        idle = [_of(agent, phase) for phase in ("done", "queued", "held")]
        graded = agent.counts.get("outcome", {}).get("graded", 0)
        why = str((agent.hold or {}).get("reason", ""))
        counts = (agent.total, idle[0], graded, agent.total - sum(idle), *idle[1:])
        table.add_row(Text(one_line(agent.label or agent.id, 60)), *(str(n) for n in counts), Text(one_line(why, 40)))
    table.caption = Text(summary(found))
    return table


def summary(found: Evaluation) -> str:
    """Return how far it is, in one line."""
    parts = [f"{found.state}: {found.of_phase('done')} of {found.total} done, {found.graded} graded"]
    parts += [f"{n} {phase}" for phase, n in sorted(found.counts.get("phase", {}).items()) if n and phase != "done"]
    parts += [
        f"{n} {outcome}" for outcome, n in sorted(found.counts.get("outcome", {}).items()) if n and outcome != "graded"
    ]
    parts += [f"{name.removesuffix('_usd')} ${float(usd):.2f}" for name, usd in _dollars(found.spend)]
    if found.eta and found.eta.get("p50_at"):
        parts.append(f"ends about {found.eta['p50_at']}")
    return one_line(" · ".join(parts), 400)


def _dollars(spend: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in ("agents_usd", "judges_usd"):
        if spend.get(name) not in (None, ""):
            yield name, spend[name]


def _of(agent: EvaluationAgent, phase: str) -> int:
    return agent.counts.get("phase", {}).get(phase, 0)


class _Shown:
    """A live table on a terminal, else a line whenever something changed. Use as a context manager."""

    def __init__(self, *, quiet: bool) -> None:
        self._found: Evaluation | None = None
        self._said = ""
        live = out.is_terminal and not quiet
        self._live = Live(get_renderable=self._render, console=out, refresh_per_second=4) if live else None

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, found: Evaluation) -> None:
        self._found = found
        said = summary(found)
        if self._live is None and said != self._said:
            self._said = said
            note(f"{found.id}: {said}")

    def _render(self) -> Table:
        return progress(self._found) if self._found is not None else Table()
