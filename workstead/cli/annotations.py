"""``workstead annotations …``: items labelled by models or people; accepted labels are facets."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.cli.common import FAILED, emit, facts, fail, in_words, labels_of, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.surveys import cost_words, csv_rows, json_lines, model_spec, state_words, wait
from workstead.cli.tables import plain_table
from workstead.models_annotations import AnnotationSet, Value
from workstead.sync import Client

annotations_app = typer.Typer(help="Items labelled by models or people; labels are facets.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(help="Name of the set and of its facet; the version is counted on", show_default=False)
]
SetId = Annotated[str, typer.Argument(help="Annotation set, as listed", show_default=False)]
About = Annotated[str, typer.Option(help="What is shown: task, instruction, deliverable or text")]
Question = Annotated[str | None, typer.Option(help="What is asked of each item; @FILE reads it")]
LabelOf = Annotated[
    list[str] | None,
    typer.Option("--answer", help="A label that may be given: LABEL or LABEL=what it means; repeatable"),
]
Several = Annotated[bool, typer.Option("--several", help="Any number of the labels, not one")]
Number = Annotated[
    str | None, typer.Option(metavar="LEAST..MOST", help="The answer is a number; whole ones if both are")
]
YesNo = Annotated[bool, typer.Option("--yes-no", help="The answer is yes or no")]
Words = Annotated[bool, typer.Option("--words", help="The answer is a short text")]
Benchmark = Annotated[str | None, typer.Option(help="Id, name@version, or a name: its newest version")]
Task = Annotated[list[str] | None, typer.Option(help="A task's id, in place of a benchmark; repeatable")]
Run = Annotated[list[str] | None, typer.Option(help="A run whose deliverable is shown; repeatable")]
Texts = Annotated[Path | None, typer.Option(help="CSV with id,text, in place of tasks", exists=True, dir_okay=False)]
Only = Annotated[
    list[str] | None, typer.Option("--include", help="Items of the benchmark by key or task name, * ? [] ; repeatable")
]
Most = Annotated[int | None, typer.Option("--tasks", min=1, help="Draw so many of the tasks, by the seed")]
Model = Annotated[list[str] | None, typer.Option(help="An annotator: model of the catalogue, model:effort; repeatable")]
Votes = Annotated[int, typer.Option(min=1, help="Of each annotator on each item")]
NoReason = Annotated[bool, typer.Option("--no-reason", help="Ask for the answer alone")]
Seed = Annotated[int, typer.Option(min=0, help="Of the draw of tasks")]
Tag = Annotated[list[str] | None, typer.Option("--label", help="key=value; repeatable")]
NoTemperature = Annotated[bool, typer.Option("--no-temperature", help="Send none, for models that take none; else 0")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the annotators are asked")]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed")]
Open = Annotated[bool, typer.Option("--open", help="Only those without a value")]
State = Annotated[str | None, typer.Option(help="answered, refused, unreadable, excluded or failed")]
Source = Annotated[
    Path, typer.Argument(help="CSV with id,value and, if you like, reason; or JSON Lines", exists=True, dir_okay=False)
]


@annotations_app.command("make")
@in_words
def make(
    name: Name,
    question: Question = None,
    answer: LabelOf = None,
    several: Several = False,
    number: Number = None,
    yes_no: YesNo = False,
    words: Words = False,
    about: About = "task",
    benchmark: Benchmark = None,
    task: Task = None,
    run: Run = None,
    texts: Texts = None,
    include: Only = None,
    tasks: Most = None,
    model: Model = None,
    votes: Votes = 1,
    no_reason: NoReason = False,
    seed: Seed = 0,
    label: Tag = None,
    no_temperature: NoTemperature = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Draw up a set, say what it takes, and ask. Without --model it stays a draft for people's labels."""
    wish: dict[str, Any] = {
        "name": name, "about": about, "benchmark": benchmark, "task_ids": task or [], "run_ids": run or [],
        "texts": {row["id"]: row["text"] for row in csv_rows(texts, ("id", "text"))} if texts else {},
        "tasks": {"include": include or [], "limit": tasks}, "question": _read(question),
        "answer": _answer(answer, several=several, number=number, yes_no=yes_no, words=words),
        "annotators": [model_spec(one, no_temperature=no_temperature) for one in model or []], "votes": votes,
        "reason": not no_reason, "seed": seed, "labels": labels_of(label),
    }  # fmt: skip
    with Client() as client:
        made = client.annotations.create(wish)
        if model:
            said = _estimate(made)
            if not yes and not typer.confirm(f"{said}. Ask now?", err=True):
                raise typer.Exit(FAILED)
            made = _asked(client, client.annotations.start(made.id))
    emit(made) if as_json else show(made)


@annotations_app.command("start")
@in_words
def start(set_id: SetId, retry_failed: Retry = False, as_json: Json = False) -> None:
    """Ask for what is missing, and wait."""
    with Client() as client:
        found = _asked(client, client.annotations.start(set_id, retry_failed=retry_failed))
    emit(found) if as_json else show(found)


@annotations_app.command("cancel")
@in_words
def cancel(set_id: SetId) -> None:
    """Ask for nothing more; what was made stays."""
    with Client() as client:
        show(client.annotations.cancel(set_id))


@annotations_app.command("accept")
@in_words
def accept(set_id: SetId, as_json: Json = False) -> None:
    """Seal a set: its values are the facet NAME@VERSION from now on, and never change."""
    with Client() as client:
        found = client.annotations.accept(set_id)
    emit(found) if as_json else show(found)


@annotations_app.command("list")
@in_words
def list_sets(limit: Limit = 50, as_json: Json = False) -> None:
    """List the sets, newest first. With --json one object per line."""
    with Client() as client:
        found = list(client.annotations.list(limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        rows = [
            (
                s.id,
                s.overlay,
                s.about,
                "accepted" if s.accepted_at else s.state,
                s.total,
                s.answered,
                s.failed,
                s.brought,
            )
            for s in found
        ]
        heads = ("set", "facet", "about", "state", "asked for", "answered", "failed", "by people")
        out.print(plain_table(heads, rows))


@annotations_app.command("show")
@in_words
def show_set(set_id: SetId, as_json: Json = False) -> None:
    """Show a set with its counts, how far its votes agree, and its cost."""
    with Client() as client:
        found = client.annotations.get(set_id)
    emit(found) if as_json else show(found)


@annotations_app.command("values")
@in_words
def values(set_id: SetId, only_open: Open = False, limit: Limit = 50, as_json: Json = False) -> None:
    """List what a set says of its items, in their order. With --json one object per line."""
    with Client() as client:
        found = list(client.annotations.values(set_id, only_open=only_open, limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        rows = [
            (v.item_key or v.target, _said(v.value), f"{v.agreeing}/{v.votes}", ", ".join(v.tied), _yes(v.by_person))
            for v in found
        ]
        out.print(plain_table(("item", "value", "votes", "tie of", "a person's"), rows))


@annotations_app.command("rows")
@in_words
def rows(set_id: SetId, state: State = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List votes of a set, newest first. With --json one object per line."""
    with Client() as client:
        found = list(client.annotations.rows(set_id, {"state": state} if state else None, limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        heads = ("target", "annotator", "vote", "state", "value", "reason", "cause")
        table = [(a.target, a.annotator, a.n, a.state, _said(a.value), a.reason or "", a.cause or "") for a in found]
        out.print(plain_table(heads, table))


@annotations_app.command("import")
@in_words
def import_(set_id: SetId, source: Source) -> None:
    """Record what people say of items: the last word on an item goes before all votes."""
    with Client() as client:
        found = client.annotations.bring(set_id, _brought(source))
    line(f"{found.new} new, {found.known} known already")


def show(found: AnnotationSet) -> None:
    """Print a set."""
    state = state_words(found.state, found.stopped_because)
    accepted = None if found.accepted_at is None else f"{found.accepted_at:%Y-%m-%d %H:%M} {found.digest}"
    facts({"set": found.id, "facet": found.overlay, "state": state, "accepted": accepted, "about": found.about})
    ended = ("answered", "refused", "unreadable", "excluded", "failed")
    counts = ", ".join(f"{getattr(found, name)} {name}" for name in ended)
    facts({"votes": f"{counts}; {found.total} to be asked for; {found.brought} by people"})
    agreement = found.agreement or {}
    kappa = "undefined" if agreement.get("kappa") is None else f"{agreement['kappa']:.3f}"
    said = f"κ {kappa} over {agreement.get('items', 0)} items, {agreement.get('unanimous', 0)} unanimous"
    facts({"values": f"{found.valued} of {found.targets} items; {agreement.get('ties', 0)} ties", "agreement": said})
    facts({"template": f"{found.template} {found.template_digest}", "cost": found.cost_usd})


def _asked(client: Client, started: AnnotationSet) -> AnnotationSet:
    wait(client, started.operation_id)
    return client.annotations.get(started.id)


def _estimate(made: AnnotationSet) -> str:
    estimate = made.estimate or {}
    return f"{estimate.get('votes')} votes on {made.targets} items, {cost_words(estimate)}"


def _read(question: str | None) -> str:
    if question is None:
        raise fail("say with --question what is asked of each item")
    return Path(question[1:]).read_text(encoding="utf-8") if question.startswith("@") else question


def _answer(
    labels: list[str] | None, *, several: bool, number: str | None, yes_no: bool, words: bool
) -> dict[str, Any]:
    if (labels is not None) + (number is not None) + yes_no + words != 1:
        raise fail("say what an answer is: --answer LABEL (twice or more), --number, --yes-no or --words")
    if labels is not None:
        pairs = (one.partition("=") for one in labels)
        return {"kind": "labels", "labels": {name: means for name, _, means in pairs}, "several": several}
    if number is not None:
        least, dots, most = number.partition("..")
        try:
            whole = dots == ".." and all(text.lstrip("-").isdigit() for text in (least, most))
            return {"kind": "number", "least": float(least), "most": float(most), "whole": whole}
        except ValueError:
            raise fail(f"{number!r} is no range such as 1..5") from None
    return {"kind": "boolean"} if yes_no else {"kind": "text"}


def _brought(source: Path) -> list[dict[str, Any]]:
    if source.suffix.lower() in (".jsonl", ".ndjson"):
        return [*json_lines(source)]
    return [
        {"target": row["id"], "value": row["value"], **({"reason": row["reason"]} if row.get("reason") else {})}
        for row in csv_rows(source, ("id", "value"))
    ]


def _said(value: Value) -> str:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value if isinstance(value, str) else f"{value:g}"


def _yes(value: bool) -> str:
    return "yes" if value else ""
