"""Scaffold kind ``single_response``: one answer of the model, without tools; its files are read from the text."""

import hashlib
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest
from service.scaffolds.contract import Plan, PlanContext
from service.scaffolds.environment import base_environment
from service.scaffolds.loops import Loop, OurLoop
from service.scaffolds.prompts import prompt_for
from service.scaffolds.single_response.loop import LEAST_TOKENS, SYSTEM, VERSION, SingleResponseLoop, cap, effort

MOST_TOKENS = 1_000_000


class SingleResponseScaffold(OurLoop):
    """Settings of its own: ``max_total_tokens`` (64 000), ``prompt`` (a shipped template), ``chat``."""

    asks_client = False

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent, manifest
        if context.model is None:
            raise Invalid("model_needed", "a single response needs a model")
        provenance: dict[str, Any] = {
            **effort(context.settings, context.model).provenance(),
            **prompt_for(task, context).provenance(),
            "system_prompt": hashlib.sha256(SYSTEM.encode()).hexdigest(),
            "system_prompt_version": VERSION,
            "max_total_tokens": _cap(context),
        }
        return Plan(argv=[], env=base_environment(context), provenance=provenance)

    def loop(self) -> Loop:
        return SingleResponseLoop()


def _cap(context: PlanContext) -> int:
    given = context.settings.further.get("max_total_tokens")
    if given is not None and not (isinstance(given, int) and LEAST_TOKENS <= given <= MOST_TOKENS):
        detail = f"settings.max_total_tokens: a number from {LEAST_TOKENS} to {MOST_TOKENS}"
        raise Invalid("bad_settings", detail, setting="max_total_tokens")
    return cap(context.settings)
