"""Scaffold kind ``mini_swe``: mini-swe-agent's ``mini``, with the kit's classes that say what happens."""

import json
from typing import Any

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext
from service.scaffolds.mini_swe.parser import MiniSweParser
from service.scaffolds.prompts import prompt_for

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
COMMAND_TIMEOUT = "command_timeout_s"
"""Setting of its own: seconds for one command, 30 unless set."""
_PREFIX = {Dialect.OPENAI: "openai", Dialect.ANTHROPIC: "anthropic"}
_BASE = {Dialect.OPENAI: f"{GATEWAY}/v1", Dialect.ANTHROPIC: GATEWAY}
_KEYS = {Dialect.OPENAI: "OPENAI_API_KEY", Dialect.ANTHROPIC: "ANTHROPIC_API_KEY"}
_CONFIGURATION, _RECORD = "mini_swe/run.yaml", "mini_swe/trajectory.json"
_COMMAND_S, _MOST_S = 30, 86_400
_ANSWER_S = 900


class MiniSweScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        programs.check_settings(settings, manifest.kind, ("max_turns", "temperature"), (COMMAND_TIMEOUT,))
        model = programs.model_of(context, manifest.kind, _PREFIX)
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        configuration = _configuration(settings, model, effort.used, prompt.text)
        command = programs.Command(
            argv=[
                *(
                    "/opt/kit/bin/mini",
                    "-y",
                    "--exit-immediately",
                    "-m",
                    f"{_PREFIX[model.dialect]}/{model.upstream_id}",
                ),
                *("--agent-class", "workstead_mini.Agent", "--model-class", "workstead_mini.Model"),
                *("-c", "mini.yaml", "-c", f"{context.home}/{_CONFIGURATION}", "-o", f"{context.home}/{_RECORD}"),
            ],
            env={
                "MSWEA_CONFIGURED": "true",
                "MSWEA_SILENT_STARTUP": "1",
                # The gateway knows prices; the program would end at a model that it does not know.
                "MSWEA_COST_TRACKING": "ignore_errors",
                "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            token_variables=(_KEYS[model.dialect],),
            # JSON is YAML.
            written=[programs.home_file(context, _CONFIGURATION, json.dumps(configuration).encode())],
            provenance={**prompt.provenance(), **effort.provenance()},
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return MiniSweParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _configuration(settings: AgentSettings, model: ModelChoice, effort: str | None, prompt: str) -> dict[str, Any]:
    agent: dict[str, Any] = {
        # Dollars are the budget's matter.
        "cost_limit": 0,
        "step_limit": settings.max_turns or 0,
        "system_prompt": settings.system_prompt or "",
    }
    return {
        "run": {"task": prompt},
        "agent": agent,
        "environment": {"timeout": _command_timeout(settings)},
        "model": {"model_kwargs": _asked(settings, model, effort)},
    }


def _asked(settings: AgentSettings, model: ModelChoice, effort: str | None) -> dict[str, Any]:
    asked: dict[str, Any] = {"drop_params": True, "api_base": _BASE[model.dialect], "timeout": _ANSWER_S}
    most = settings.max_output_tokens or model.max_output_tokens
    if most is not None:
        asked["max_tokens"] = most
    if settings.temperature is not None:
        asked["temperature"] = settings.temperature
    if effort is not None:
        # Named, because litellm drops it for models that it does not know.
        asked |= {"reasoning_effort": effort, "allowed_openai_params": ["reasoning_effort"]}
    return asked


def _command_timeout(settings: AgentSettings) -> int:
    seconds = settings.further.get(COMMAND_TIMEOUT, _COMMAND_S)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= _MOST_S:
        detail = f"settings.{COMMAND_TIMEOUT}: whole seconds from 1 to {_MOST_S}"
        raise Invalid("bad_settings", detail, setting=COMMAND_TIMEOUT)
    return seconds
