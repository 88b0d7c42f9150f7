"""``workstead plans …``: named, versioned choices of methods, judges and votes."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from workstead.cli.common import emit, facts, in_words, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.errors import WorksteadError
from workstead.models_grading import GradingPlan
from workstead.sync import Client

plans_app = typer.Typer(help="How deliverables are graded: methods, judges, prompts, votes.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the plan", show_default=False)]
Plan = Annotated[str, typer.Argument(help="NAME@VERSION, or NAME for its newest version", show_default=False)]
Spec = Annotated[Path, typer.Argument(help="JSON file of what it says (docs/grading.md); - is standard input")]
Named = Annotated[str | None, typer.Option("--name", help="Only versions of this plan")]


class NoSpec(WorksteadError):
    """The file is no plan."""


@plans_app.command("put")
@in_words
def put_plan(name: Name, spec: Spec, as_json: Json = False) -> None:
    """Make a plan's next version, or find the newest one if that says the same already."""
    said = _read(spec)
    with Client() as client:
        plan = client.grading_plans.create(name, said)
    emit(plan) if as_json else line(f"{plan.plan}: {_methods(plan)}")


@plans_app.command("list")
@in_words
def list_plans(name: Named = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List plans, newest version first. With --json one object per line. `task@1`, the tasks' own graders, is always there."""
    with Client() as client:
        found = list(client.grading_plans.list({"name": name} if name else {}, limit=limit))
    for plan in found if as_json else ():
        emit(plan)
    if not as_json:
        out.print(plain_table(("plan", "methods", "made"), [(p.plan, _methods(p), p.created_at) for p in found]))


@plans_app.command("show")
@in_words
def show_plan(plan: Plan, as_json: Json = False) -> None:
    """Show what a plan says; with --json as `plans put` reads its ``spec``."""
    with Client() as client:
        found = client.grading_plans.get(plan)
    if as_json:
        emit(found)
        return
    facts({"plan": found.plan, "digest": found.digest, "author": found.author, "made": found.created_at})
    line(json.dumps(found.spec, indent=2))


def _read(path: Path) -> dict[str, Any]:
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise NoSpec(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise NoSpec(f"{path}: a plan is a JSON object")
    return cast("dict[str, Any]", found)


def _methods(plan: GradingPlan) -> str:
    graders = cast("list[dict[str, Any]]", plan.spec.get("graders") or [])
    return ", ".join(str(g.get("method")) for g in graders) or "the tasks' own graders"
