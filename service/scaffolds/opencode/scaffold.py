"""Scaffold kind ``opencode``: OpenCode's ``run`` with a provider of its own configuration, one JSON object per line."""

import json
from collections.abc import Mapping
from typing import Any

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest, StopStep
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext
from service.scaffolds.opencode.parser import OpenCodeParser
from service.scaffolds.prompts import prompt_for

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
KEY_VARIABLE = "GATEWAY_TOKEN"
PROVIDER = "workstead"
STOP = (StopStep(signal="TERM", wait_s=5),)
"""On a signal the program ends at once and says nothing."""
_PACKAGES = {
    # Chat Completions: every provider that speaks OpenAI's dialect has them.
    Dialect.OPENAI: ("@ai-sdk/openai-compatible", f"{GATEWAY}/v1"),
    Dialect.ANTHROPIC: ("@ai-sdk/anthropic", f"{GATEWAY}/v1"),
}
_CONTEXT_TOKENS, _OUTPUT_TOKENS = 200_000, 32_000
_SYSTEM_PROMPT = ".config/opencode/system_prompt.md"


class OpenCodeScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        # Its own limit of steps only asks the model to stop, so it is not offered as one.
        programs.check_settings(settings, manifest.kind, takes=("temperature",))
        model = programs.model_of(context, manifest.kind, _PACKAGES)
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        command = programs.Command(
            argv=[
                *("/opt/kit/bin/opencode", "run", "--format", "json", "--thinking"),
                # Without a title it asks a model for one.
                *("--title", task.name, "-m", f"{PROVIDER}/{model.upstream_id}"),
            ],
            env={
                "OPENCODE_CONFIG_CONTENT": json.dumps(_configuration(context, model, effort.used)),
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            },
            stdin=prompt.data,
            token_variables=(KEY_VARIABLE,),
            written=_written(context),
            provenance={**prompt.provenance(), **effort.provenance()},
            stop=STOP,
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return OpenCodeParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _written(context: PlanContext) -> list[programs.WrittenFile]:
    said = context.settings.system_prompt
    return [] if said is None else [programs.home_file(context, _SYSTEM_PROMPT, said.encode(errors="replace"))]


def _configuration(context: PlanContext, model: ModelChoice, effort: str | None) -> dict[str, Any]:
    settings = context.settings
    package, url = _PACKAGES[model.dialect]
    small = next((side for side in context.side_models if side.dialect == model.dialect), model)
    models = {m.upstream_id: _entry(m, settings, effort if m is model else None) for m in (small, model)}
    found: dict[str, Any] = {
        "model": f"{PROVIDER}/{model.upstream_id}",
        "small_model": f"{PROVIDER}/{small.upstream_id}",
        "enabled_providers": [PROVIDER],
        "provider": {
            PROVIDER: {
                "npm": package,
                "name": PROVIDER,
                # A slow answer is the gateway's to judge.
                "options": {"baseURL": url, "apiKey": f"{{env:{KEY_VARIABLE}}}", "timeout": False},
                "models": models,
            }
        },
        # The sandbox is what limits the agent; a question would never be answered.
        "permission": "allow",
        "autoupdate": False,
        "share": "disabled",
    }
    if settings.system_prompt is not None:
        found["instructions"] = [f"{context.home}/{_SYSTEM_PROMPT}"]
    if settings.temperature is not None:
        found["agent"] = {"build": {"temperature": settings.temperature}}
    return found


def _entry(model: ModelChoice, settings: AgentSettings, effort: str | None) -> Mapping[str, Any]:
    output = settings.max_output_tokens or model.max_output_tokens or _OUTPUT_TOKENS
    entry: dict[str, Any] = {
        "limit": {"context": model.context_window or _CONTEXT_TOKENS, "output": output},
        "temperature": settings.temperature is not None,
        "reasoning": bool(model.efforts),
        "tool_call": True,
    }
    if effort is not None:
        entry["options"] = {"effort": effort} if model.dialect is Dialect.ANTHROPIC else {"reasoningEffort": effort}
    return entry
