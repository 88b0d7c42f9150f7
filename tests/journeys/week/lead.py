"""A benchmark lead at work: the ``workstead`` command and the client library, and nothing else of ours."""

import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from service.models.scripted.server import Scripted
from tests.journeys.stack import Stack, wait_until
from workstead.models import Run
from workstead.models_evaluations import Evaluation
from workstead.sync import Client

WORKSTEAD = Path(sys.executable).with_name("workstead")
LONG_S = 900.0
T = TypeVar("T")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def body(self) -> Any:
        return json.loads(self.out)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Lead:
    """One service, the provider of the models, a folder for files; and what came of the week so far."""

    stack: Stack
    provider: Scripted
    client: Client
    folder: Path
    keys: list[str] = field(default_factory=list[str])
    """All that were ever brought: none may be seen again."""
    evaluation: str = ""
    redone: int = 0
    """Runs that were made void and made again."""
    stopped: str = ""
    """The runaway."""

    def tell(self, *words: str | Path, code: int = 0, stdin: str = "") -> Said:
        """Run the command, which must end with ``code``."""
        env = {**os.environ, "WORKSTEAD_URL": self.stack.url, "WORKSTEAD_TOKEN": self.stack.token, "COLUMNS": "250"}
        done = subprocess.run(
            [WORKSTEAD, *words], env=env, input=stdin, capture_output=True, text=True, timeout=LONG_S, check=False
        )
        assert done.returncode == code, (words, done.returncode, done.stdout[-6000:], done.stderr[-6000:])
        return Said(done.returncode, done.stdout, done.stderr)

    def key(self, model: str, scenario: str) -> None:
        """Bring or replace a model's key; the provider knows by it what it is to say."""
        self.keys.append(f"sk-scripted-{scenario}.{uuid.uuid4().hex}")
        self.tell("models", "credential", model, stdin=self.keys[-1])

    @property
    def now(self) -> Evaluation:
        return self.client.evaluations.get(self.evaluation)

    def runs(self, **filters: str) -> list[Run]:
        return list(self.client.runs.list({"evaluation_id": self.evaluation, **filters}))

    def of(self, label: str, **filters: str) -> list[Run]:
        """Return an agent's runs that still count."""
        agent = self.agent(label)
        return [run for run in self.runs(agent_id=agent, **filters) if run.outcome != "invalidated"]

    def agent(self, label: str) -> str:
        return next(agent.id for agent in self.now.agents if agent.label == label)

    def task(self, key: str) -> str:
        return next(run.task.id for run in self.runs() if run.task.name == f"rows/{key}")

    def outcomes(self) -> Counter[str]:
        return Counter(run.outcome or "" for run in self.runs())

    def until(self, what: str, check: Callable[[], T | None], timeout_s: float = 240.0) -> T:
        return wait_until(what, check, timeout_s, 0.3)

    def matrix(self) -> dict[str, Any]:
        return dict(self.tell("eval", "matrix", self.evaluation, "--json").body)
