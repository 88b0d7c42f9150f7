"""``workstead regrade``: a plan over many runs' deliverables; the estimate first, then a sample, then the rest."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, cast

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, GRADED, UNGRADED, emit, facts, in_words, line
from workstead.cli.options import Json, LabelIs, OfAgent, OfTask, Outcome, Where, Yes
from workstead.cli.run_filters import as_choice, run_query
from workstead.cli.watch import note
from workstead.models_grading import Regrade

Plan = Annotated[str, typer.Option("--plan", help="NAME@VERSION, or NAME for its newest version", show_default=False)]
Runs = Annotated[list[str] | None, typer.Argument(help="Runs, run_…, in place of filters", show_default=False)]
Sample = Annotated[int | None, typer.Option("--sample", min=1, help="Grade so many first, and compare")]
Stratify = Annotated[str | None, typer.Option("--stratify", help="Spread the sample over `agent`, or over a facet")]
Seed = Annotated[int, typer.Option("--seed", help="Of the sample and of the interval")]
Primary = Annotated[bool, typer.Option("--primary", help="The plan becomes the runs' own once all are graded")]
Round = Annotated[int, typer.Option("--round", min=1, help="The same plan over the same runs again is another round")]
Only = Annotated[bool, typer.Option("--estimate", help="Print the estimate and stop")]


@in_words
def regrade(
    plan: Plan,
    ids: Runs = None,
    agent: OfAgent = None,
    task: OfTask = None,
    outcome: Outcome = None,
    label: LabelIs = None,
    where: Where = None,
    sample: Sample = None,
    stratify: Stratify = None,
    seed: Seed = 0,
    primary: Primary = False,
    round_: Round = 1,
    estimate: Only = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Grade deliverables under another plan, without running anything anew.

    Prints what it will take and asks; with --sample shows the difference on the sample and asks again. Exit code 3: some of
    its gradings failed.
    """
    drawn = None if sample is None else {"n": sample, "seed": seed, **({"stratify": stratify} if stratify else {})}
    if drawn is None and stratify is not None:
        raise typer.BadParameter("--stratify is about the --sample")
    filters = {"agent": agent, "task": task, "outcome": outcome, "label": label, "where": where}
    if ids and any(filters.values()):
        raise typer.BadParameter("either runs or filters")
    said = {"sample": drawn, "primary": primary, "round": round_}
    code = asyncio.run(_regrade(plan, ids, filters, said, _Asking(estimate, yes, as_json)))
    raise typer.Exit(code)


class _Asking:
    """How far to go, and who is asked."""

    def __init__(self, only_estimate: bool, yes: bool, as_json: bool) -> None:
        self.only_estimate, self.yes, self.as_json = only_estimate, yes, as_json

    def show(self, regrade: Regrade) -> None:
        if self.as_json:
            emit(regrade)
        elif regrade.comparison is not None:
            facts(compared(regrade.comparison))
        else:
            facts(estimated(regrade.estimate))

    def goes_on(self, question: str) -> bool:
        return self.yes or typer.confirm(question, err=True)


async def _regrade(
    plan: str, ids: list[str] | None, filters: Mapping[str, Any], said: Mapping[str, Any], asking: _Asking
) -> int:
    async with AsyncClient() as client:
        choice = None if ids else as_choice(await run_query(client, **filters))
        drawn = await client.regrades.create(plan, runs=ids or None, filter=choice, **said)
        asking.show(drawn)
        if asking.only_estimate:
            return GRADED
        if said["sample"] is not None:
            if not asking.goes_on(f"Grade {drawn.estimate['sample']['runs']} of them?"):
                return await _given_up(client, drawn)
            drawn = await _graded(client, drawn, "sample")
            asking.show(drawn)
        if not asking.goes_on(f"Grade {'the rest' if said['sample'] else 'them'} under {drawn.plan}?"):
            return await _given_up(client, drawn)
        done = await _graded(client, drawn, "all")
        asking.show(done)
        failed = done.progress.gradings.get("failed", 0) if done.progress else 0
        return UNGRADED if failed or done.state != "done" else GRADED


async def _graded(client: AsyncClient, regrade: Regrade, scope: str) -> Regrade:
    await client.regrades.start(regrade.id, scope)
    said = ""

    def tell(now: Regrade) -> None:
        nonlocal said
        counts = now.progress.gradings if now.progress else {}
        text = ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
        if text != said:
            said = text
            note(f"{regrade.id}: {text or 'starting'}")

    return await client.regrades.wait(regrade.id, tell)


async def _given_up(client: AsyncClient, regrade: Regrade) -> int:
    await client.regrades.cancel(regrade.id)
    line(f"{regrade.id}: cancelled; no run changed")
    return FAILED


def estimated(estimate: Mapping[str, Any]) -> dict[str, object]:
    """Return the estimate as names and values."""
    cost, evidence, took = estimate.get("cost_usd"), _part(estimate, "evidence"), estimate.get("duration_s")
    return {
        "runs": f"{estimate.get('runs')} ({estimate.get('left_out', 0)} left out: nothing sealed)",
        "gradings": estimate.get("gradings"),
        "by people": estimate.get("people_gradings") or None,
        "judge calls": estimate.get("judge_calls"),
        "tokens": f"{estimate.get('input_tokens')} read, {estimate.get('output_tokens')} written",
        "cost": "unknown"
        if cost is None
        else f"${float(cost['p50']):.2f}, at most ${float(cost['p90']):.2f} in 9 of 10 cases",
        "basis": estimate.get("basis"),
        "evidence to extract": f"{evidence.get('to_extract')} of {evidence.get('documents')}",
        "takes about": "unknown" if took is None else f"{took:.0f} s",
        "of these, the sample": _part(estimate, "sample").get("runs"),
    }


def compared(found: Mapping[str, Any]) -> dict[str, object]:
    """Return the comparison with the runs' present verdicts as names and values."""
    difference, cost = _part(found, "difference"), _part(found, "cost")
    up, down = _part(found, "flips_up"), _part(found, "flips_down")
    interval = difference.get("interval")
    return {
        "compared": f"{found.get('n')} runs ({found.get('left_out')} without a score on one side)",
        "mean before, after": f"{_number(found.get('before_mean'))}, {_number(found.get('after_mean'))}",
        "difference [95 %]": _number(difference.get("mean"))
        + ("" if interval is None else f" [{_number(interval[0])}, {_number(interval[1])}]"),
        "agreement, kappa": f"{_number(found.get('agreement'))}, {_number(found.get('kappa'))}",
        "passes now": _flips(up),
        "passes no more": _flips(down),
        "cost so far": "unknown" if cost.get("usd") is None else f"${float(cost['usd']):.2f}",
    }


def _part(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", found.get(name) or {})


def _flips(found: Mapping[str, Any]) -> str:
    ids = cast("list[str]", found.get("run_ids") or [])
    return f"{found.get('n', 0)}" + (f": {', '.join(ids[:5])}{' …' if len(ids) > 5 else ''}" if ids else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
