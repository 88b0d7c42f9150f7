"""Scaffold kind ``openhands``: the default agent of OpenHands' SDK, run by the kit's own program."""

import json
from typing import Any

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext
from service.scaffolds.openhands.parser import OpenHandsParser
from service.scaffolds.prompts import prompt_for

EFFORTS = ("low", "medium", "high", "xhigh")
KEY_VARIABLE = "OPENHANDS_TOKEN"
_PROVIDERS = {Dialect.OPENAI: ("openai", f"{GATEWAY}/v1"), Dialect.ANTHROPIC: ("anthropic", GATEWAY)}
_SETTINGS = "openhands/settings.json"
_ANSWER_S = 900


class OpenHandsScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        programs.check_settings(settings, manifest.kind, takes=("max_turns", "temperature"))
        model = programs.model_of(context, manifest.kind, _PROVIDERS)
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        run = {
            "prompt": prompt.text,
            "workspace": context.workspace,
            "max_turns": settings.max_turns,
            "system_prompt": settings.system_prompt,
            "llm": _llm(settings, model, effort.used),
        }
        command = programs.Command(
            argv=["/opt/kit/bin/openhands-run", f"{context.home}/{_SETTINGS}"],
            env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"},
            token_variables=(KEY_VARIABLE,),
            written=[programs.home_file(context, _SETTINGS, json.dumps(run).encode())],
            provenance={**prompt.provenance(), **effort.provenance()},
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return OpenHandsParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _llm(settings: AgentSettings, model: ModelChoice, effort: str | None) -> dict[str, Any]:
    """Return fields of the SDK's ``LLM``."""
    provider, url = _PROVIDERS[model.dialect]
    fields: dict[str, Any] = {
        "model": f"{provider}/{model.upstream_id}",
        "base_url": url,
        # The gateway retries and waits itself.
        "num_retries": 2,
        "retry_min_wait": 1,
        "retry_max_wait": 8,
        "timeout": _ANSWER_S,
        # Null: it would ask for "high" by itself.
        "reasoning_effort": effort,
        "temperature": settings.temperature,
        "max_input_tokens": model.context_window,
        "max_output_tokens": settings.max_output_tokens or model.max_output_tokens,
    }
    return {name: value for name, value in fields.items() if value is not None or name == "reasoning_effort"}
