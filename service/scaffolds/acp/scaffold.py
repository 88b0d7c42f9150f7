"""Scaffold kind ``acp``: the manifest's command speaks the Agent Client Protocol; our client beside it in the sandbox."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from service.domain.agents import AcpOptions, AgentSpec, Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import from_manifest, programs, templates
from service.scaffolds.acp.parser import AcpParser
from service.scaffolds.contract import AgentReport, LineParser, Plan, PlanContext

CLIENT = ".workstead/acp_client.py"
"""Below HOME."""
START = (
    'for p in /opt/kit/python/bin/python3 python3; do command -v "$p" >/dev/null && exec "$p" -I -S "$0"; done; '
    'echo "neither kit nor environment has a python3" >&2; exit 127'
)
CANCEL_S = 8
"""Seconds that the agent has to end after a cancel: less than the ladder's first step."""
MODE = "mode"
"""Further setting of the agent: id of a session mode, before the manifest's own."""
_UNUSED = ("prompt", "parser", "mapping")


class AcpScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        from_manifest.check_command(manifest)
        given = [name for name in _UNUSED if name in manifest.model_fields_set]
        if given:
            raise Invalid("not_for_this_kind", f"a scaffold of kind 'acp' takes no {given[0]}", fields=given)
        templates.check_template(_options(manifest).model or "", where="acp.model")

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        options, mode = _options(manifest), context.settings.further.get(MODE)
        _check_settings(manifest, context)
        values = from_manifest.values_for(task, agent, manifest, context)
        command = from_manifest.plan_command(manifest, context, values)
        client = programs.home_file(context, CLIENT, client_program())
        job = {
            "argv": command.argv,
            "prompt": values.variables["prompt"],
            "permissions": {"default": options.permission, "by_kind": options.permission_by_kind},
            "mode": options.mode if mode is None else mode,
            "model": None if options.model is None else templates.render(options.model, values.variables),
            "auth_method": options.auth_method,
            "start_s": options.start_s,
            "cancel_s": CANCEL_S,
        }
        return replace(
            command,
            # The command starts in the workspace.
            argv=["/bin/sh", "-c", START, client.path],
            stdin=json.dumps(job).encode(),
            written=[client],
            stop=manifest.stop or programs.LADDER,
            hang_s=manifest.hang_s or programs.HANG_S,
            provenance={**values.provenance, "acp_command": command.argv, "acp_mode": job["mode"]},
        )

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return AcpParser()

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        return programs.ended_well(exit, manifest, report)


@cache
def client_program() -> bytes:
    return (Path(__file__).parent / "inside.py").read_bytes()


def _options(manifest: ScaffoldManifest) -> AcpOptions:
    return manifest.acp or AcpOptions()


def _check_settings(manifest: ScaffoldManifest, context: PlanContext) -> None:
    """Refuse what neither the command nor the protocol would tell the agent. Raises Invalid ``unsupported_setting``."""
    settings, named = context.settings, from_manifest.named_variables(manifest)
    takes: Sequence[str] = [name for name in ("max_turns", "temperature") if name in named]
    programs.check_settings(settings, manifest.kind, takes=takes, further=[MODE])
    refused = [name for name in ("system_prompt", "max_output_tokens") if getattr(settings, name) is not None]
    if settings.effort != "default" and "effort" not in named:
        refused.append("effort")
    if not isinstance(settings.further.get(MODE, ""), str):
        refused.append(MODE)
    if refused:
        detail = f"scaffold {manifest.name} has no way to tell its program of {refused[0]!r}"
        raise Invalid("unsupported_setting", detail, settings=refused)
