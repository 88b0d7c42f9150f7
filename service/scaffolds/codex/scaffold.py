"""Scaffold kind ``codex``: Codex CLI's ``exec`` with a provider of its own configuration, one JSON object per line."""

import json

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.models import Dialect
from service.domain.policies import ProviderTools, default_provider_tools
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.codex.parser import CodexParser
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext
from service.scaffolds.prompts import prompt_for

EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
KEY_VARIABLE = "OPENAI_API_KEY"
_PROVIDER = {
    "name": "workstead",
    "base_url": f"{GATEWAY}/v1",
    "env_key": KEY_VARIABLE,
    "wire_api": "responses",
    "request_max_retries": 2,
    "stream_max_retries": 2,
    # A stream may be silent for as long as the gateway waits for a provider.
    "stream_idle_timeout_ms": 900_000,
}
_QUIET = (
    *("--disable", "unbounded_connection_retries", "--disable", "plugins", "--disable", "apps"),
    *("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"),
)
"""Nothing is asked of other hosts, and an unreachable gateway ends the turn."""


class CodexScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        programs.check_settings(settings, manifest.kind)
        model = programs.model_of(context, manifest.kind, (Dialect.OPENAI,))
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        search = (settings.provider_tools or default_provider_tools(task.network)) is ProviderTools.ALLOW
        command = programs.Command(
            argv=[
                *("/opt/kit/bin/codex", "exec", "--json", "--skip-git-repo-check"),
                # Its own sandbox needs namespaces, which a hardened container does not give.
                "--dangerously-bypass-approvals-and-sandbox",
                *_settings(model, effort.used, settings.system_prompt, search=search),
                *_QUIET,
                *("-m", model.upstream_id, "-"),
            ],
            env={"CODEX_HOME": f"{context.home}/.codex"},
            stdin=prompt.data,
            token_variables=(KEY_VARIABLE,),
            # The program refuses a home that does not exist.
            written=[programs.home_file(context, ".codex/config.toml", b"# Settings are arguments.\n")],
            provenance={**prompt.provenance(), **effort.provenance()},
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return CodexParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _settings(model: ModelChoice, effort: str | None, system_prompt: str | None, *, search: bool) -> list[str]:
    inline = ", ".join(f"{name}={_toml(value)}" for name, value in _PROVIDER.items())
    values = [("model_provider", _toml("workstead")), ("model_providers.workstead", f"{{{inline}}}")]
    if effort is not None:
        values.append(("model_reasoning_effort", _toml(effort)))
    if model.context_window is not None:
        values.append(("model_context_window", _toml(model.context_window)))
    if system_prompt is not None:
        values.append(("developer_instructions", _toml(system_prompt)))
    if not search:
        values.append(("web_search", _toml("disabled")))
    return [part for name, value in values for part in ("-c", f"{name}={value}")]


def _toml(value: str | int) -> str:
    """Return a TOML value. JSON's strings are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
