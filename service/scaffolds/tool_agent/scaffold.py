"""Scaffold kind ``tool_agent``: our own loop with tools; no program runs inside but its tool calls."""

import hashlib
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest
from service.scaffolds.contract import Plan, PlanContext
from service.scaffolds.environment import base_environment
from service.scaffolds.loops import Loop, OurLoop
from service.scaffolds.prompts import prompt_for
from service.scaffolds.tool_agent.loop import ToolAgentLoop
from service.scaffolds.tool_agent.prompt import SYSTEM, VERSION
from service.scaffolds.tool_loop.calls import check_tools
from service.scaffolds.tool_loop.servers.settings import servers_of
from service.scaffolds.tool_loop.work import DEFAULT_TURNS, effort


class ToolAgentScaffold(OurLoop):
    """Settings of its own: ``tools`` (names among those of the sandbox), ``mcp_servers`` (further tools), ``prompt`` (a
    shipped template), ``chat``."""

    asks_client = True

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent, manifest
        if context.model is None:
            raise Invalid("model_needed", "a tool agent needs a model")
        check_tools(context)
        servers = servers_of(context.settings)
        provenance: dict[str, Any] = {
            **effort(context.settings, context.model).provenance(),
            **prompt_for(task, context).provenance(),
            "system_prompt": hashlib.sha256(SYSTEM.encode()).hexdigest(),
            "system_prompt_version": VERSION,
            "max_turns": context.settings.max_turns or DEFAULT_TURNS,
            **({"mcp_servers": sorted(servers)} if servers else {}),
        }
        return Plan(argv=[], env=base_environment(context), provenance=provenance)

    def loop(self) -> Loop:
        return ToolAgentLoop()
