"""Scaffold kind ``openclaw``: OpenClaw's ``agent exec``, one JSON object when it ends."""

import json
from typing import Any

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest, StopStep
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext
from service.scaffolds.openclaw.parser import OpenClawParser
from service.scaffolds.prompts import prompt_for

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
KEY_VARIABLE = "GATEWAY_TOKEN"
PROVIDER = "workstead"
STOP = (StopStep(signal="TERM", wait_s=5),)
"""On a signal the program ends at once and says nothing."""
HANG_S = 1500.0
"""It prints nothing until its end, and starts slowly."""
_APIS = {
    Dialect.OPENAI: ("openai-completions", f"{GATEWAY}/v1"),
    Dialect.ANTHROPIC: ("anthropic-messages", GATEWAY),
}
_CONTEXT_TOKENS, _OUTPUT_TOKENS = 200_000, 32_000
_CONFIGURATION, _PROMPT = "openclaw/openclaw.json", "openclaw/prompt.md"
_AFTER_THE_CLOCK_S = 3600
_BACKGROUND_MS = 1_200_000
"""A command is left in the background only after this, where the program's own rule is 10 s: with the program's end the
sandbox ends, and the command with it."""


class OpenClawScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        programs.check_settings(settings, manifest.kind)
        if settings.system_prompt is not None:
            detail = f"a scaffold of kind {manifest.kind!r} takes no setting 'system_prompt'; use a prompt template"
            raise Invalid("unsupported_setting", detail, settings=["system_prompt"])
        model = programs.model_of(context, manifest.kind, _APIS)
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        command = programs.Command(
            argv=_argv(model, effort.used, context),
            env={},
            token_variables=(KEY_VARIABLE,),
            written=[
                programs.home_file(context, _CONFIGURATION, json.dumps(_configuration(context, model)).encode()),
                programs.home_file(context, _PROMPT, prompt.data),
            ],
            provenance={**prompt.provenance(), **effort.provenance()},
            stop=STOP,
            hang_s=HANG_S,
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return OpenClawParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _argv(model: ModelChoice, effort: str | None, context: PlanContext) -> list[str]:
    argv = ["/opt/kit/bin/openclaw", "agent", "exec", "--json", "--config", f"{context.home}/{_CONFIGURATION}"]
    argv += ["--cwd", context.workspace, "--model", f"{PROVIDER}/{model.upstream_id}"]
    if effort is not None:
        argv += ["--thinking", effort]
    # Its own clock, of ten minutes, must not be the one that ends the run.
    argv += ["--timeout", str(int(context.seconds) + _AFTER_THE_CLOCK_S)]
    return [*argv, "--message-file", f"{context.home}/{_PROMPT}"]


def _configuration(context: PlanContext, model: ModelChoice) -> dict[str, Any]:
    api, url = _APIS[model.dialect]
    choices = [model, *(side for side in context.side_models if side.dialect == model.dialect)]
    provider = {
        "baseUrl": url,
        "apiKey": f"${{{KEY_VARIABLE}}}",
        "api": api,
        "models": [_entry(choice, context) for choice in choices],
    }
    return {
        "models": {"providers": {PROVIDER: provider}},
        "agents": {"defaults": {"model": {"primary": f"{PROVIDER}/{model.upstream_id}"}}},
        "tools": {"exec": {"backgroundMs": _BACKGROUND_MS}},
    }


def _entry(model: ModelChoice, context: PlanContext) -> dict[str, Any]:
    output = context.settings.max_output_tokens or model.max_output_tokens or _OUTPUT_TOKENS
    return {
        "id": model.upstream_id,
        "name": model.upstream_id,
        "contextWindow": model.context_window or _CONTEXT_TOKENS,
        "maxTokens": output,
        "reasoning": bool(model.efforts),
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        # Without the first it asks for no usage, without the second it does not say the effort.
        "compat": {"supportsUsageInStreaming": True, "supportsReasoningEffort": bool(model.efforts)},
    }
