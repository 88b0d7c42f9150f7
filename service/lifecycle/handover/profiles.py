"""What a profile leaves out of the tables. Figures are made from what is left, so that they can be made from it again."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from service.domain.blinding import Names, parts_of
from service.domain.errors import Invalid
from service.domain.handover import ExportSpec, Profile
from service.reporting.dictionary import TABLES
from service.reporting.frames import Tables

PRIVATE = "private"
"""Value of facet ``split`` or label of tasks that a public export says nothing of but their results."""
HIDDEN = "hidden"
_MAKERS = ("scaffold", "model", "provider", "vendor", "family", "label")
_OPTIONAL = ("model", "provider", "vendor", "family", "effort")
_OF_MODEL = ("model", "provider", "requested_model", "reported_model")


@dataclass(frozen=True, slots=True)
class Profiled:
    tables: Tables
    names: Names
    """That must not leave the house."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """What → how many."""


def profiled(tables: Tables, spec: ExportSpec, people: Iterable[str]) -> Profiled:
    """Return the tables as the profile shows them. ``people``: names of raters. Raises Invalid ``unknown_agent``."""
    hosts = _texts(tables["attempts"], "host")
    if spec.profile is Profile.INTERNAL:
        return Profiled(tables, Names.of(spec.names))
    found = _nulled(_nulled(tables, "attempts", "host"), "exclusions", "author")
    secret = {*spec.names, *hosts, *people}
    if spec.profile is Profile.REVIEWER:
        return Profiled(found, Names.of(secret))
    found, aliased, gone = _without_identities(found, spec)
    found, private = _without_private(found)
    found = _emptied(_nulled(found, "ratings", "reason"), "runs", "labels")
    left_out = {"embargoed_agents": len(spec.embargo), "embargoed_runs": gone, "private_tasks": private}
    return Profiled(found, Names.of(secret | aliased), left_out)


def _without_identities(tables: Tables, spec: ExportSpec) -> tuple[Tables, set[str], int]:
    """Return the tables, the names that nothing may say any more, and how many runs went."""
    aliases = {_agent_id(tables, name): alias for name, alias in spec.aliases.items()}
    embargoed = [_agent_id(tables, name) for name in spec.embargo]
    shut = {*aliases, *embargoed}
    agents = tables["agents"]
    told = _identities(agents.filter(pl.col("agent_id").is_in(shut)))
    open_names = _identities(agents.filter(~pl.col("agent_id").is_in(shut)))
    before = tables["runs"].height
    tables = _without_agents(tables, embargoed)
    tables = _aliased(tables, aliases)
    return tables, told - open_names, before - tables["runs"].height


def _agent_id(tables: Tables, name: str) -> str:
    agents = tables["agents"]
    found = agents.filter((pl.col("agent_id") == name) | (pl.col("label") == name))["agent_id"].to_list()
    if not found:
        raise Invalid("unknown_agent", f"no agent of these evaluations is called {name!r}", agent=name)
    return str(found[0])


def _identities(agents: pl.DataFrame) -> set[str]:
    """Return the parts of what tells whose work it is: what an agent that is shown has too is no secret."""
    names = {name for column in _MAKERS for name in _texts(agents, column)}
    return {part.casefold() for name in names for part in parts_of(name)}


def _without_agents(tables: Tables, agent_ids: list[str]) -> Tables:
    """Leave out the agents with all that is theirs."""
    runs = tables["runs"].filter(pl.col("agent_id").is_in(agent_ids))["run_id"].implode()
    of_runs = dict.fromkeys(("run_id", "first_run_id", "second_run_id", "other_run_id"), runs)
    gone = {**dict.fromkeys(("agent_id", "first_agent_id", "second_agent_id"), agent_ids), **of_runs}
    return {name: frame.filter(_others(frame, gone)) for name, frame in tables.items()}


def _others(frame: pl.DataFrame, gone: Mapping[str, Any]) -> pl.Expr:
    """Return what holds of rows that name nothing of what is gone."""
    named = [
        pl.col(column).is_in(ids).fill_null(value=False) for column, ids in gone.items() if column in frame.columns
    ]
    return ~pl.any_horizontal(pl.lit(value=False), *named)


def _aliased(tables: Tables, aliases: Mapping[str, str]) -> Tables:
    """Give the agents their aliases; who makes them, and with what, is left out."""
    shut = pl.col("agent_id").is_in([*aliases])
    agents = tables["agents"].with_columns(
        pl.col("agent_id").replace_strict(aliases, default=pl.col("label")).alias("label"),
        *(
            pl.when(shut).then(None).otherwise(pl.col(name)).alias(name)
            for name in (*_OPTIONAL, "alias", "released_on")
        ),
        *(
            pl.when(shut).then(pl.lit(HIDDEN)).otherwise(pl.col(name)).alias(name)
            for name in ("scaffold", "kind", "digest")
        ),
        pl.when(shut).then(pl.lit("{}")).otherwise(pl.col("settings")).alias("settings"),
    )
    runs = tables["runs"].filter(shut)["run_id"].implode()
    theirs = pl.col("run_id").is_in(runs) & pl.col("grading_id").is_null()
    requests = tables["model_requests"].with_columns(
        pl.when(theirs).then(None).otherwise(pl.col(name)).alias(name)
        for name in (*_OF_MODEL, "error", "finish_reason")
    )
    attempts = tables["attempts"].with_columns(
        pl.when(pl.col("run_id").is_in(runs)).then(None).otherwise(pl.col("kit_image")).alias("kit_image")
    )
    return {**tables, "agents": agents, "model_requests": requests, "attempts": attempts}


def _without_private(tables: Tables) -> tuple[Tables, int]:
    """Leave of private tasks what figures need: an id, the facets that group, the price.

    Their texts' vectors go: a vector tells much of the text that it was made of, and its digest whether one has guessed it. What
    forecasters gave as a reason may quote it.
    """
    tasks = tables["tasks"]
    flags = [_is_private(text) for text in tasks["facets"].to_list()]
    numbers = [f"private/{n}" for n in range(1, tasks.height + 1)]
    shut = pl.Series("shut", flags, pl.Boolean)
    shown = tasks.with_columns(
        pl.when(shut).then(pl.Series("name", numbers, pl.String)).otherwise(pl.col("name")).alias("name"),
        pl.when(shut).then(None).otherwise(pl.col("item_key")).alias("item_key"),
        pl.when(shut).then(pl.lit(HIDDEN)).otherwise(pl.col("digest")).alias("digest"),
    )
    ids = tasks.filter(shut)["task_id"].implode()
    theirs = pl.col("task_id").is_in(ids)
    forecasts = tables["forecasts"].with_columns(
        pl.when(theirs).then(None).otherwise(pl.col(name)).alias(name) for name in ("reason", "rendered_sha256")
    )
    embeddings = tables["embeddings"].filter(~theirs)
    return {**tables, "tasks": shown, "forecasts": forecasts, "embeddings": embeddings}, sum(flags)


def _is_private(facets: str | None) -> bool:
    split: Any = json.loads(facets or "{}").get("split")
    return split == PRIVATE


def _texts(frame: pl.DataFrame, column: str) -> set[str]:
    return {str(value) for value in frame[column].unique().to_list() if value}


def _nulled(tables: Tables, table: str, column: str) -> Tables:
    kind = tables[table].schema[column]
    assert any(c.name == column and c.null for c in TABLES[table].columns), f"{table}.{column} is never null"
    return {**tables, table: tables[table].with_columns(pl.lit(None, kind).alias(column))}


def _emptied(tables: Tables, table: str, column: str) -> Tables:
    return {**tables, table: tables[table].with_columns(pl.lit("{}").alias(column))}
