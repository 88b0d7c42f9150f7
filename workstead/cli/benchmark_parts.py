"""``workstead benchmarks derive | embed | embeddings``: benchmarks made of others, and vectors of their tasks' texts."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from workstead.cli.common import emit, facts, fail, in_words, labels_of, line, out
from workstead.cli.options import Json
from workstead.cli.surveys import wait
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models_annotations import Derivation
from workstead.sync import Client

Ref = Annotated[str, typer.Argument(help="NAME, NAME@VERSION or id", show_default=False)]
New = Annotated[str, typer.Argument(metavar="NAME@VERSION", help="What it will be called", show_default=False)]
Include = Annotated[list[str] | None, typer.Option("--include", help="Items by key or task name, * ? [] ; repeatable")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="Items that are left out; repeatable")]
FacetIs = Annotated[
    list[str] | None, typer.Option("--facet", help="FACET=VALUE, also NAME@VERSION=VALUE of annotations; repeatable")
]
Price = Annotated[
    str | None, typer.Option(metavar="LEAST..MOST", help="US dollars, ends included; either may be missing")
]
Undisputed = Annotated[bool, typer.Option("--undisputed", help="Leave out items that are disputed")]
Stratify = Annotated[str | None, typer.Option(help="Facet to draw by, also NAME@VERSION of annotations")]
PerStratum = Annotated[int | None, typer.Option(min=1, help="At most so many of each value")]
Total = Annotated[int | None, typer.Option(min=1, help="At most so many of all")]
Proportional = Annotated[bool, typer.Option("--proportional", help="Of --total each value gives its share")]
Stratum = Annotated[
    list[str] | None, typer.Option("--stratum", help="A value that is wanted, others are not; repeatable")
]
Seed = Annotated[int, typer.Option(min=0, help="Of what is drawn")]
Policy = Annotated[
    list[str] | None,
    typer.Option("--policy", help="NAME=VALUE in place of the parent's, e.g. missing=exclude; repeatable"),
]
Tag = Annotated[list[str] | None, typer.Option("--label", help="key=value; repeatable")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count only")]
Model = Annotated[str, typer.Argument(help="Model of the catalogue that makes embeddings", show_default=False)]
Dimensions = Annotated[int, typer.Option(min=0, max=1024, help="Numbers of each vector; 0: the model's own")]


@in_words
def derive(
    ref: Ref,
    new: New,
    include: Include = None,
    exclude: Exclude = None,
    facet: FacetIs = None,
    price: Price = None,
    undisputed: Undisputed = False,
    stratify: Stratify = None,
    per_stratum: PerStratum = None,
    total: Total = None,
    proportional: Proportional = False,
    stratum: Stratum = None,
    seed: Seed = 0,
    policy: Policy = None,
    label: Tag = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Make a benchmark of the items that a rule chooses; the rule is kept with it, and chooses the same again."""
    name, at, version = new.rpartition("@")
    if not at or not name or not version:
        raise fail(f"{new!r}: call it NAME@VERSION")
    changed = _pairs("--policy", "NAME", policy)
    rule: dict[str, Any] = {
        "include": include or [], "exclude": exclude or [], "facets": _facets(facet), "price": _price(price),
        "disputed": not undisputed, "seed": seed,
        "sample": {
            "stratify": stratify, "per_stratum": per_stratum, "total": total, "proportional": proportional,
            "strata": stratum or [],
        },
    }  # fmt: skip
    with Client() as client:
        parent = client.benchmarks.find(ref)
        policies = _policies(client, parent.id, changed)
        found = client.benchmarks.derive(
            parent.id, name, version, rule, policies=policies, labels=labels_of(label), dry_run=dry_run
        )
    emit(found) if as_json else _show(found)


@in_words
def embed(ref: Ref, model: Model, dimensions: Dimensions = 256) -> None:
    """Have vectors made of the texts of tasks that have none: for the text baseline of forecasts. It costs money."""
    with Client() as client:
        begun = client.benchmarks.embed(client.benchmarks.find(ref).id, model, dimensions=dimensions)
        wait(client, begun.id)
        made = client.operations.get(begun.id).result or {}
    line(f"{made.get('made')} made, {made.get('tasks')} tasks have them")


@in_words
def list_embeddings(ref: Ref, as_json: Json = False) -> None:
    """List which vectors a benchmark's tasks have. With --json one object per line."""
    with Client() as client:
        found = client.benchmarks.embeddings(client.benchmarks.find(ref).id)
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        rows = [(one.model, one.asked_dimensions or "its own", one.length, one.tasks) for one in found]
        out.print(plain_table(("model", "asked for", "numbers", "tasks"), rows))


def _show(found: Derivation) -> None:
    if found.benchmark is None:
        line("nothing was made (--dry-run)")
    else:
        facts({"benchmark": f"{found.benchmark.name}@{found.benchmark.version}", "id": found.benchmark.id})
    facts({"items": f"{found.taken} of {found.fitting} that the rule lets through", "digest": found.digest})
    if found.strata:
        rows = [(one["name"], one["fitting"], one["taken"]) for one in found.strata]
        out.print(plain_table(("stratum", "there", "taken"), rows))
    for one in found.empty:
        note(f"nothing fits {one!r}")
    for one in found.useless:
        note(f"the pattern {one!r} matches nothing")


def _facets(given: list[str] | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in _pairs("--facet", "FACET", given):
        found.setdefault(name, []).append(value)
    return found


def _pairs(option: str, what: str, given: list[str] | None) -> list[tuple[str, str]]:
    pairs = [(one, *one.partition("=")) for one in given or ()]
    for one, name, equals, _ in pairs:
        if not equals or not name:
            raise fail(f"{option} {one!r}: {what}=VALUE is meant")
    return [(name, value) for _, name, _, value in pairs]


def _policies(client: Client, parent_id: str, changed: list[tuple[str, str]]) -> dict[str, str] | None:
    """Return the parent's policies with the changes; None: its own as they are."""
    if not changed:
        return None
    head = client.benchmarks.get(parent_id).head or {}
    return {**head.get("policies", {}), **dict(changed)}


def _price(given: str | None) -> dict[str, str] | None:
    if given is None:
        return None
    least, dots, most = given.partition("..")
    ends = {name: text for name, text in (("least_usd", least), ("most_usd", most)) if text}
    try:
        if dots and ends and all(Decimal(text).is_finite() for text in ends.values()):
            return ends
    except InvalidOperation:
        pass
    raise fail(f"--price {given!r}: LEAST..MOST is meant, such as 50..200, 50.. or ..200")
