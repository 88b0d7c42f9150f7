"""One agent per model for a main table (RLI, section A.3; JobBench, appendix C), by a rule that is said and printed.

The best on the data that the table shows is a choice that looks at the answer: it flatters models that were tried in more
scaffolds. It is not offered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.reporting.costs import Scored


@dataclass(frozen=True, slots=True)
class Chosen:
    agents: list[str]
    rule: str
    """In words, for the table."""
    left_out: dict[str, str]
    """Agent → why it is not in the main table."""


def by_list(agents: Sequence[Scored], names: Sequence[str]) -> Chosen:
    """Take the agents named. Raises ValueError for a name that is no agent's."""
    known = {a.agent for a in agents}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no such agent: {', '.join(unknown)}")
    chosen = [a.agent for a in agents if a.agent in set(names)]
    return Chosen(chosen, "agents named by hand", dict.fromkeys(sorted(known.difference(chosen)), "not named"))


def by_vendor(agents: Sequence[Scored], scaffolds: Mapping[str, str]) -> Chosen:
    """Take of each model the agents in its vendor's scaffold; ``scaffolds``: vendor → scaffold's name, ``*`` for all others."""
    chosen: list[str] = []
    left_out: dict[str, str] = {}
    for agent in agents:
        wanted = scaffolds.get(agent.vendor or "", scaffolds.get("*"))
        if wanted == agent.scaffold:
            chosen.append(agent.agent)
        else:
            left_out[agent.agent] = f"not in {wanted}" if wanted else "no scaffold is named for its vendor"
    named = ", ".join(f"{vendor}: {scaffold}" for vendor, scaffold in sorted(scaffolds.items()))
    return Chosen(chosen, f"one scaffold per vendor ({named})", left_out)


def by_other_tasks(agents: Sequence[Scored], elsewhere: Mapping[str, float], where: str) -> Chosen:
    """Take of each model the agent with the highest score on other tasks than the table's; ``elsewhere``: agent → score there.

    Of equals the first by name. Agents without a score there are left out.
    """
    best: dict[str | None, Scored] = {}
    for agent in sorted(agents, key=lambda a: a.agent):
        if agent.agent not in elsewhere:
            continue
        holder = best.get(agent.model)
        if holder is None or elsewhere[agent.agent] > elsewhere[holder.agent]:
            best[agent.model] = agent
    chosen = {a.agent for a in best.values()}
    left_out = {
        a.agent: "another scaffold is better there" if a.agent in elsewhere else "no score there"
        for a in agents
        if a.agent not in chosen
    }
    return Chosen([a.agent for a in agents if a.agent in chosen], f"the best on {where}, of each model", left_out)
