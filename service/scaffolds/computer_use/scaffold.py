"""Scaffold kind ``computer_use``: our own loop on the sandbox's screen; no program runs inside but what the screen shows."""

import hashlib
from typing import Any

from service.domain.agents import SCREENS, AgentSpec, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest
from service.scaffolds.computer_use.loop import ComputerUseLoop
from service.scaffolds.computer_use.prompt import SYSTEM, VERSION
from service.scaffolds.computer_use.settings import ComputerSettings
from service.scaffolds.computer_use.speaking import speech_of
from service.scaffolds.contract import Plan, PlanContext
from service.scaffolds.environment import base_environment
from service.scaffolds.loops import Loop, OurLoop
from service.scaffolds.prompts import prompt_for
from service.scaffolds.tool_loop.calls import check_tools
from service.scaffolds.tool_loop.servers.settings import servers_of
from service.scaffolds.tool_loop.work import DEFAULT_TURNS, effort


class ComputerUseScaffold(OurLoop):
    """Settings of its own: ``ComputerSettings``; ``mcp_servers`` and ``prompt`` as the tool agent has them."""

    surfaces = SCREENS
    asks_client = True

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent, manifest
        if context.model is None:
            raise Invalid("model_needed", "an agent that uses a computer needs a model")
        settings = ComputerSettings.of(context.settings)
        speech = speech_of(context.model, settings, context.vocabulary)
        if settings.tools:
            check_tools(context)
        servers = servers_of(context.settings)
        provenance: dict[str, Any] = {
            **effort(context.settings, context.model).provenance(),
            **prompt_for(task, context).provenance(),
            "system_prompt": hashlib.sha256(SYSTEM.encode()).hexdigest(),
            "system_prompt_version": VERSION,
            "max_turns": context.settings.max_turns or DEFAULT_TURNS,
            "vocabulary": speech.vocabulary.name,
            "native_tool": speech.native,
            "confirm": settings.confirm,
            "history_pictures": settings.history_pictures,
            "tools": settings.tools,
            **({"mcp_servers": sorted(servers)} if servers else {}),
        }
        return Plan(argv=[], env=base_environment(context), provenance=provenance)

    def loop(self) -> Loop:
        return ComputerUseLoop()
