"""Loops on a stage: a catalogue model that is the scripted provider behind a Unix socket, as the gateway would be."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.grants import Grant
from service.domain.models import ModelSpec
from service.lifecycle.context import Context
from service.lifecycle.ports import NoModels, Plant
from service.models.scripted.scenario import Scenario
from service.models.scripted.server import Scripted
from service.store import agents, models, scaffolds
from tests.integration.lifecycle.stage import Stage
from tests.integration.models.pipe import piped

IDS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.5", "gemini": "gemini-2.5-pro"}


class Behind(NoModels):
    """The local side only; who asks is not checked here."""

    def __init__(self, socket: Path) -> None:
        self.local_socket = str(socket)

    def service_token(self) -> str:
        return "of-our-own-processes"

    async def open(self, grant: Grant, plant: Plant | None) -> None:
        del grant, plant


@dataclass
class Workshop:
    stage: Stage
    provider: Scripted
    models: Behind

    @classmethod
    @asynccontextmanager
    async def open(cls, stage: Stage, folder: Path, *scenarios: Scenario) -> AsyncGenerator["Workshop"]:
        with Scripted(scenarios) as provider:
            socket = folder / "models.sock"
            async with piped(socket, provider.port):
                yield cls(stage, provider, Behind(socket))

    def context(self, **changes: Any) -> Context:
        return self.stage.context(models=self.models, **changes)

    async def agent(self, kind: str, scenario: str, dialect: str = "anthropic", **settings: Any) -> str:
        """An agent of ours whose model follows the scenario."""
        name = await self.model(scenario, dialect)
        manifest = ScaffoldManifest.model_validate({"name": name, "version": "1", "kind": kind})
        async with self.stage.db.transaction() as tx:
            await scaffolds.register(tx, self.stage.project.id, manifest)
            agent = AgentSpec(scaffold=f"{name}@1", model=name, settings=settings)
            return (await agents.create(tx, self.stage.project.id, agent))[0].id

    async def model(self, scenario: str, dialect: str = "anthropic") -> str:
        """Add a model that follows the scenario; return its name."""
        name = f"{scenario}-{uuid.uuid4().hex[:8]}"
        spec = ModelSpec.model_validate(
            {
                "name": name, "provider": "lab", "upstream_id": f"{IDS[dialect]}@{scenario}", "dialect": dialect,
                "base_url": "https://lab.example",
            }
        )  # fmt: skip
        async with self.stage.db.transaction() as tx:
            await models.create(tx, self.stage.project.id, spec, private=False)
        return name
