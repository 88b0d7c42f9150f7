"""The agents of an evaluation: those that exist, and those that are made of their parts as ``POST /v1/agents`` makes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from service.domain.agents import AgentSpec
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.evaluation_plans import laid_over, name_of
from service.domain.evaluations import AgentChoice, EvaluationSpec
from service.lifecycle import scaffold_choice
from service.lifecycle.choosing import check_agent
from service.lifecycle.evaluations.fitting import Member
from service.lifecycle.evaluations.problems import Problems
from service.lifecycle.submit import doer_of
from service.scaffolds.shipped import LATEST
from service.store import agents
from service.store.database import Tx


async def members_of(
    tx: Tx, project_id: str, spec: EvaluationSpec, choices: Sequence[AgentChoice], problems: Problems
) -> list[Member]:
    """Return the agents, made where there is none like it; each that is none is added to ``problems``."""
    found: dict[str, Member] = {}
    for choice in choices:
        try:
            agent_id, made = (
                (choice.agent, False) if choice.agent else await _made(tx, project_id, choice, spec.settings)
            )
            doer = await doer_of(tx, project_id, agent_id)
        except (Invalid, NotFound, Conflict) as error:
            problems.add(error, agent=name_of(choice))
            continue
        if doer.agent.id in found:
            detail = f"it is {doer.agent.label}, which is there already; several runs of one agent are its samples"
            problems.add(Invalid("duplicate_agent", detail), agent=name_of(choice))
            continue
        settings = laid_over(spec.run, choice.run)
        found[doer.agent.id] = Member(doer, choice.samples or spec.samples, choice.run, settings, made)
    return list(found.values())


async def _made(tx: Tx, project_id: str, choice: AgentChoice, common: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the agent's id and whether it is new."""
    spec = await scaffold_choice.choose(tx, project_id, _spec(choice, common))
    await check_agent(tx, project_id, spec)
    row, created = await agents.create(tx, project_id, spec)
    return row.id, created


def _spec(choice: AgentChoice, common: Mapping[str, Any]) -> AgentSpec:
    """A scaffold without a version is its newest one. Raises Invalid ``bad_agent``."""
    named = str(choice.scaffold)
    versioned = named if "@" in named else f"{named}@{LATEST}"
    try:
        return choice.model_copy(update={"scaffold": versioned}).spec(dict(common))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Invalid("bad_agent", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
