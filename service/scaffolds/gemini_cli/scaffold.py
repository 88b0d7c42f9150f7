"""Scaffold kind ``gemini_cli``: Gemini CLI without a terminal, one JSON object per line."""

import json
from typing import Any

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest, StopStep
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext, WrittenFile
from service.scaffolds.gemini_cli.parser import GeminiParser
from service.scaffolds.prompts import prompt_for

SYSTEM_SETTINGS = "/opt/kit/etc/gemini/settings.json"
"""Of the kit, of the highest rank: a task's own ``.gemini/settings.json`` does not change how it signs in."""
EFFORTS = ("minimal", "low", "medium", "high")
"""Thinking levels. A model without them in the catalogue (Gemini 2.5 has budgets) keeps the program's default."""
_RENAMED = frozenset({"gemini-3-pro-preview", "gemini-3.5-flash", "auto", "pro", "flash", "flash-lite"})
"""Ids that version 0.61 replaces by one of its own choice (measured on the wire; the last four are its aliases)."""
STOP = (StopStep(signal="TERM", wait_s=3),)
"""The program ignores signals while a tool runs, so a ladder would only take time."""


class GeminiCliScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        programs.check_settings(settings, manifest.kind, takes=("max_turns", "temperature"))
        model = programs.model_of(context, manifest.kind, (Dialect.GEMINI,))
        _refuse_renamed(model)
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        written: list[WrittenFile] = []
        if own := _settings(settings, model, effort.used):
            written.append(programs.home_file(context, ".gemini/settings.json", json.dumps(own).encode()))
        if settings.system_prompt is not None:
            # What the program adds to its own system prompt as the user's memory.
            written.append(programs.home_file(context, ".gemini/GEMINI.md", settings.system_prompt.encode()))
        command = programs.Command(
            argv=[
                *("/opt/kit/bin/gemini", "--skip-trust", "--output-format", "stream-json", "--approval-mode", "yolo"),
                *("-m", model.upstream_id),
            ],
            env={
                "GOOGLE_GEMINI_BASE_URL": GATEWAY,
                "GEMINI_CLI_SYSTEM_SETTINGS_PATH": SYSTEM_SETTINGS,
                "GEMINI_CLI_NO_RELAUNCH": "true",
                "SHELL": "/bin/bash",
            },
            stdin=prompt.data,
            token_variables=("GEMINI_API_KEY",),
            written=written,
            provenance={**prompt.provenance(), **effort.provenance()},
            stop=STOP,
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return GeminiParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _settings(settings: AgentSettings, model: ModelChoice, effort: str | None) -> dict[str, Any]:
    """Return the user's settings of the program; what is not asked for is its default."""
    found: dict[str, Any] = {}
    if settings.max_turns is not None:
        found["model"] = {"maxSessionTurns": settings.max_turns}
    generation: dict[str, Any] = {}
    if settings.temperature is not None:
        generation["temperature"] = settings.temperature
    if effort is not None:
        generation["thinkingConfig"] = {"thinkingLevel": effort.upper()}
    if generation:
        override = {"match": {"model": model.upstream_id}, "modelConfig": {"generateContentConfig": generation}}
        found["modelConfigs"] = {"customOverrides": [override]}
    return found


def _refuse_renamed(model: ModelChoice) -> None:
    if model.upstream_id in _RENAMED:
        detail = (
            f"the program asks for another model in place of {model.upstream_id}: the result would be another model's"
        )
        raise Invalid("model_renamed", detail)
