"""``workstead judges …``: whether a judge can be trusted with deliverables of one's own."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, emit, facts, fail, in_words, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.run_filters import as_choice, run_query
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.models_judges import JudgeProbe
from workstead.sync import Client

judges_app = typer.Typer(help="Whether a judge can be trusted.", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="Judge: a model of the catalogue", show_default=False)]
Plan = Annotated[str, typer.Option(help="Grading plan, name@version, whose method and prompt are used")]
Agent = Annotated[list[str] | None, typer.Option(help="Deliverables of this agent: label or id; repeatable")]
Task = Annotated[list[str] | None, typer.Option(help="Of this task: name or id; repeatable")]
Label = Annotated[list[str] | None, typer.Option(help="Of runs with this label, key=value; repeatable")]
Where = Annotated[list[str] | None, typer.Option("--on", help="Any filter of the run list, name=value; repeatable")]
Run = Annotated[list[str] | None, typer.Option("--run", help="These runs, in place of filters; repeatable")]
N = Annotated[int, typer.Option("--n", min=1, max=500, help="Deliverables, drawn evenly over agents")]
Seed = Annotated[int, typer.Option(min=0, help="Of the draw")]
Repeats = Annotated[int, typer.Option(min=2, max=9, help="Gradings of each unaltered deliverable")]
Sections = Annotated[
    list[str] | None,
    typer.Option("--section", help="repeats, altered, injection, drift, order, length; repeatable; default: all"),
]
Effort = Annotated[str | None, typer.Option(help="Reasoning effort of the judge")]
Temperature = Annotated[float | None, typer.Option(min=0, max=2, help="Default: 0; see --no-temperature")]
NoTemperature = Annotated[bool, typer.Option("--no-temperature", help="Send none, for models that take none")]
Compare = Annotated[str | None, typer.Option("--compare-with", help="A plan whose stored verdicts are compared")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the judge is asked")]
ProbeId = Annotated[str, typer.Argument(help="Probe, as listed", show_default=False)]
SUCCEEDED = "succeeded"


@judges_app.command("probe")
@in_words
def probe(
    model: Model,
    plan: Plan,
    agent: Agent = None,
    task: Task = None,
    label: Label = None,
    where: Where = None,
    run: Run = None,
    n: N = 60,
    seed: Seed = 0,
    repeats: Repeats = 3,
    section: Sections = None,
    effort: Effort = None,
    temperature: Temperature = None,
    no_temperature: NoTemperature = False,
    compare_with: Compare = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Try a judge out: repeats, altered work, injections, benign additions, order, length, agreement, cost. One page."""
    judge: dict[str, Any] = {"model": model, "effort": effort}
    if no_temperature or temperature is not None:
        judge["temperature"] = None if no_temperature else temperature
    wish: dict[str, Any] = {
        "judge": judge, "plan": plan, "n": n, "seed": seed, "repeats": repeats, "compare_with": compare_with,
        **({"sections": section} if section else {}),
    }  # fmt: skip
    wish |= {"runs": run} if run else {"filter": asyncio.run(_choice(agent, task, label, where))}
    with Client() as client:
        planned = client.judges.estimate_probe(wish)
        said = f"{len(planned.runs)} deliverables, {planned.gradings} gradings by {model}"
        if not yes and not typer.confirm(f"{said}. Ask now?", err=True):
            raise typer.Exit(FAILED)
        ended = client.operations.wait(client.judges.probe(wish).id, _say)
        if ended.state != SUCCEEDED or ended.result is None:
            raise fail(f"{ended.id}: {ended.state}; `workstead operations show {ended.id}` says more")
        found = client.judges.get_probe(str(ended.result["probe_id"]))
    emit(found) if as_json else show(found)


@judges_app.command("probes")
@in_words
def list_probes(limit: Limit = 50, as_json: Json = False) -> None:
    """List the probes that were made, newest first. With --json one object per line."""
    with Client() as client:
        found = list(client.judges.probes(limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        rows = [(p.id, p.model, p.plan, len(p.report["runs"]), len(p.report["concerns"]), p.created_at) for p in found]
        out.print(plain_table(("probe", "judge", "plan", "runs", "concerns", "made"), rows))


@judges_app.command("show")
@in_words
def show_probe(probe_id: ProbeId, as_json: Json = False) -> None:
    """Show a probe's page."""
    with Client() as client:
        found = client.judges.get_probe(probe_id)
    emit(found) if as_json else show(found)


async def _choice(
    agent: Sequence[str] | None, task: Sequence[str] | None, label: Sequence[str] | None, where: Sequence[str] | None
) -> dict[str, Any]:
    async with AsyncClient() as client:
        return as_choice(await run_query(client, agent=agent, task=task, label=label, where=where))


def _say(operation: Operation) -> None:
    note(f"{operation.id}: {operation.state} {operation.done}/{operation.total or '?'} {operation.unit}")


def show(probe: JudgeProbe) -> None:
    """Print the page."""
    report = probe.report
    method = f"{report['method']} {report['method_version']}, prompt {report['prompt']}, plan {report['plan']}"
    facts({"probe": probe.id, "judge": report["judge_key"], "calls itself": ", ".join(report["reported_models"])})
    facts({"method": method, "deliverables": len(report["runs"]), "failures": _counts(report["failures"])})
    if report["repeats"] is not None:
        facts({"repeats": _repeats(report["repeats"])})
    out.print(plain_table(("condition", "n", "mean change", "95 %", "up", "down", "higher", "failed"), _shifts(report)))
    for one in report["compared"]:
        said = f"agreement {_number(one['agreement'])}, kappa {_number(one['kappa'])} over {one['n']} runs"
        facts({f"against {one['against']}": said})
    facts({"cost": _cost(report["cost"])})
    for concern in report["concerns"]:
        line(f"! {concern}")
    if not report["concerns"]:
        line("nothing stands out")


def _shifts(report: Mapping[str, Any]) -> list[tuple[object, ...]]:
    named = [(f"{kind}: {name}", s) for kind in ("altered", "injection", "drift") for name, s in report[kind].items()]
    named += [(name, report[name]) for name in ("order", "length") if report[name] is not None]
    return [
        (name, s["n"], _number(s["mean"], sign=True), _interval(s["interval"]), s["up"], s["down"], s["higher"], s["failed"])
        for name, s in named
    ]  # fmt: skip


def _repeats(found: Mapping[str, Any]) -> str:
    flips = found["flips"]
    kappa, agreed = _number(found["kappa"]), _number(found["agreement"])
    return (
        f"kappa {kappa}, agreement {agreed} over {found['items']} items; {flips['count']} of {flips['n']} verdicts flip"
    )


def _cost(cost: Mapping[str, Any]) -> str:
    usd = "unknown" if cost["usd"] is None else f"{cost['usd']:.4f} USD, {cost['usd_per_grading']:.5f} a grading"
    return f"{usd}; {cost['requests']} requests, {cost['input_tokens']} + {cost['output_tokens']} tokens"


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in found.items())


def _interval(found: Sequence[float] | None) -> str:
    return "-" if found is None else f"{found[0]:+.2f} … {found[1]:+.2f}"


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.3f}" if sign else f"{value:.3f}"
