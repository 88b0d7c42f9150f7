"""What a preflight found, by agent and by judge, as it is kept with the evaluation."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MOST_PROBLEMS = 20
"""Of one agent."""
DETAIL_CHARS = 2000


@dataclass(slots=True)
class Findings:
    """Filled while checks end; ``agents``: the ids of all that are looked at."""

    operation_id: str
    agents: dict[str, list[dict[str, str]]]
    judges: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    runs: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def wrong(self, agents: Iterable[str], what: str, detail: str) -> None:
        """``detail``: in the words of whoever refused."""
        for agent in agents:
            if len(self.agents[agent]) < MOST_PROBLEMS:
                self.agents[agent].append({"what": what, "detail": detail[:DETAIL_CHARS]})

    def judge(self, key: str, model: str, detail: str) -> None:
        """``detail``: empty where it answered."""
        self.judges[key] = {"model": model, "ok": not detail, "detail": detail[:DETAIL_CHARS]}

    def note(self, text: str) -> None:
        self.notes.append(text[:DETAIL_CHARS])

    def fine(self, agent: str) -> bool:
        return not self.agents[agent]

    @property
    def ok(self) -> bool:
        return all(map(self.fine, self.agents)) and all(judge["ok"] for judge in self.judges.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "operation_id": self.operation_id,
            "ok": self.ok,
            "agents": {agent: {"ok": not found, "problems": found} for agent, found in self.agents.items()},
            "judges": self.judges,
            "runs": self.runs,
            "notes": self.notes,
        }
