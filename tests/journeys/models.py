"""A scripted provider behind a running service, and agents that work with its models."""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from service.domain.models import TokenUsage
from service.models.scripted.exchanges import Exchange
from service.models.scripted.scenario import Scenario
from service.models.scripted.server import Scripted
from tests.journeys.stack import Stack, stack

IDS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.5", "gemini": "gemini-2.5-pro"}
EFFORTS = ["low", "medium", "high"]


@dataclass(frozen=True)
class Lab:
    """One service and one provider. Each model has its own key, so what it was asked is told apart."""

    stack: Stack
    provider: Scripted

    def model(self, dialect: str, scenario: str | Scenario = "success", **fields: Any) -> "LabModel":
        """Add a model whose every answer follows ``scenario``."""
        if isinstance(scenario, Scenario):
            self.provider.add(scenario)
            scenario = scenario.name
        name, key = f"lab/{uuid.uuid4().hex[:12]}", f"sk-scripted-{scenario}.{uuid.uuid4().hex}"
        base = self.provider.url + ("/v1" if dialect == "openai" else "")
        spec = {
            "name": name, "provider": "lab", "upstream_id": IDS[dialect], "dialect": dialect, "base_url": base,
            "efforts": EFFORTS, **fields,
        }  # fmt: skip
        made = self.stack.call("POST", "/v1/models", json=spec)
        self.stack.call("PUT", f"/v1/models/{made['id']}/credential", json={"secret": key})
        return LabModel(self, name, made["id"], key)

    def agent(self, scaffold: str, model: "LabModel", **settings: Any) -> str:
        body = {"scaffold": scaffold, "model": model.name, "settings": settings}
        return str(self.stack.call("POST", "/v1/agents", json=body)["id"])


@dataclass(frozen=True)
class LabModel:
    lab: Lab
    name: str
    id: str
    key: str

    def asked(self) -> list[Exchange]:
        return [exchange for exchange in self.lab.provider.requests() if exchange.credential == self.key]

    def told(self) -> TokenUsage:
        """Return the sum of what the provider said it took."""
        total = TokenUsage()
        for exchange in self.asked():
            total = total.plus(exchange.usage or TokenUsage())
        return total


@contextmanager
def lab(**settings: str) -> Generator[Lab]:
    with Scripted() as provider, stack(WORKSTEAD_MODELS__ALLOW_PRIVATE="true", **settings) as running:
        yield Lab(running, provider)
