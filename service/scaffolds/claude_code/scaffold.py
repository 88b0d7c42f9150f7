"""Scaffold kind ``claude_code``: Claude Code in print mode, one JSON object per line."""

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import efforts, programs
from service.scaffolds.claude_code.parser import ClaudeCodeParser
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, ModelChoice, Plan, PlanContext
from service.scaffolds.prompts import prompt_for

EFFORTS = ("low", "medium", "high", "xhigh", "max")
_MAX_TIMEOUT_MS = 2**31 - 1
"""Node's longest timer."""


class ClaudeCodeScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        programs.check_manifest(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        settings = context.settings
        programs.check_settings(settings, manifest.kind, takes=("max_turns",))
        model = programs.model_of(context, manifest.kind, (Dialect.ANTHROPIC,))
        effort = efforts.resolve(settings, model, EFFORTS)
        prompt = prompt_for(task, context)
        command = programs.Command(
            argv=_argv(model, settings, effort.used),
            env=_environment(model, context),
            # By standard input: a prompt may be longer than an argument, and may begin with a dash.
            stdin=prompt.data,
            token_variables=("ANTHROPIC_API_KEY",),
            provenance={**prompt.provenance(), **effort.provenance()},
        )
        return programs.plan_of(command, manifest, context)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return ClaudeCodeParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


def _argv(model: ModelChoice, settings: AgentSettings, effort: str | None) -> list[str]:
    argv = ["/opt/kit/bin/claude", "-p", "--output-format", "stream-json", "--verbose", "--model", model.upstream_id]
    argv += ["--dangerously-skip-permissions"]
    if settings.max_turns is not None:
        argv += ["--max-turns", str(settings.max_turns)]
    if effort is not None:
        argv += ["--effort", effort]
    if settings.system_prompt is not None:
        # One argument: a text that begins with a dash is no option.
        argv += [f"--append-system-prompt={settings.system_prompt}"]
    return argv


def _environment(model: ModelChoice, context: PlanContext) -> dict[str, str]:
    # The program knows models by role; it must not ask for one that the run does not have.
    small = context.side_models[0].upstream_id if context.side_models else model.upstream_id
    env = {
        "ANTHROPIC_BASE_URL": GATEWAY,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": small,
        "ANTHROPIC_SMALL_FAST_MODEL": small,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": model.upstream_id,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": model.upstream_id,
        "CLAUDE_CODE_SUBAGENT_MODEL": model.upstream_id,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # The gateway retries and waits itself; what it gives up on is not asked again for minutes.
        "CLAUDE_CODE_MAX_RETRIES": "3",
        "API_TIMEOUT_MS": str(min(max(1, int(context.seconds)) * 1000, _MAX_TIMEOUT_MS)),
        # Set in containers: else the program asks that its permissions be limited.
        "IS_SANDBOX": "1",
    }
    if model.max_output_tokens is not None:
        env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(model.max_output_tokens)
    return env
