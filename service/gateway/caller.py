"""Whoever asks the gateway: a run's attempt by its grant, or one of our own processes by the service token."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.domain.grants import Grant, GrantedModel, GrantedService
from service.domain.policies import ProviderTools, RunBudget
from service.gateway.activity import Activity
from service.gateway.budgets import Budget
from service.gateway.cassettes.replay import Playing
from service.gateway.ports import Purpose
from service.store.rows_requests import Spent


@dataclass(slots=True)
class Caller:
    project_id: str
    purpose: Purpose
    models: Sequence[GrantedModel]
    budget: Budget
    patience_s: float
    """Most time that one request waits for a provider."""
    run_id: str | None = None
    attempt: int | None = None
    subject: str | None = None
    """What it is for, where it is no run: a grading's id."""
    services: Sequence[GrantedService] = ()
    provider_tools: ProviderTools = ProviderTools.DENY
    deny_hosts: Sequence[str] = ()
    max_output_tokens: int | None = None
    replay_of: str | None = None
    keep_bodies: bool = True
    until: float | None = None
    """Monotonic end; null = none."""
    token_hashes: Sequence[str] = ()
    activity: Activity = field(default_factory=Activity)
    playing: Playing = field(default_factory=Playing)
    under_way: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    @property
    def seconds_left(self) -> float:
        return float("inf") if self.until is None else self.until - time.monotonic()

    def cut(self) -> None:
        """Break off what is under way, wherever it came in."""
        for task in self.under_way:
            task.cancel()

    def belong_to(self, attempt: "Caller") -> None:
        """Count as the attempt's own: what its side model waits for and fails at ends it, and its end cuts this; what
        answers it is the attempt's recording, if it has one."""
        self.activity, self.under_way = attempt.activity, attempt.under_way
        self.patience_s, self.until = attempt.patience_s, attempt.until
        self.replay_of, self.playing, self.keep_bodies = attempt.replay_of, attempt.playing, attempt.keep_bodies

    def renew(self, grant: Grant) -> None:
        """Take over what may change in the life of an attempt."""
        self.models, self.services = grant.models, grant.services
        self.provider_tools, self.deny_hosts = grant.provider_tools, grant.network.deny_hosts
        self.max_output_tokens, self.keep_bodies = grant.max_output_tokens, grant.keep_bodies
        self.replay_of, self.patience_s = grant.replay_of, grant.budget.provider_patience_s
        self.budget.rules = grant.budget
        self.until = time.monotonic() + grant.seconds_left
        self.token_hashes = list(dict.fromkeys([*grant.token_hashes, *self.token_hashes]))[:64]


def caller_of(grant: Grant, spent: Spent) -> Caller:
    caller = Caller(
        grant.project_id, Purpose.AGENT, grant.models, Budget(grant.budget, spent), grant.budget.provider_patience_s,
        run_id=grant.run_id, attempt=grant.attempt,
    )  # fmt: skip
    caller.renew(grant)
    return caller


def own_caller(
    project_id: str, purpose: Purpose, models: Sequence[GrantedModel], patience_s: float, run_id: str | None = None,
    attempt: int | None = None,
) -> Caller:  # fmt: skip
    """Return one of our own processes: what it may spend is its own business, every request is in the ledger."""
    budget = Budget(RunBudget(provider_patience_s=patience_s))
    return Caller(project_id, purpose, models, budget, patience_s, run_id=run_id, attempt=attempt)
