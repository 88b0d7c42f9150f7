"""What a manifest's own command becomes: templates of argv and environment, files and settings, made into a plan."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest
from service.scaffolds import prompts, templates
from service.scaffolds.contract import GATEWAY, Plan, PlanContext, PlannedFile
from service.scaffolds.efforts import resolve
from service.scaffolds.environment import base_environment, check_name
from service.scaffolds.programs import check_strings, model_of

KIT_FILES = ".home/kit"
"""Folder below /workspace where the manifest's files lie."""


@dataclass(frozen=True, slots=True)
class Values:
    variables: Mapping[str, str]
    provenance: Mapping[str, Any]


def check_command(manifest: ScaffoldManifest) -> None:
    """Refuse argv, environment and files that could not be planned. Raises Invalid."""
    if not manifest.argv:
        raise Invalid("argv_missing", f"a scaffold of kind {manifest.kind!r} needs argv")
    for i, text in enumerate(manifest.argv):
        templates.check_template(text, where=f"argv[{i}]")
    for name, text in manifest.env.items():
        check_name(name)
        if text != templates.RUN_TOKEN:
            templates.check_template(text, where=f"env[{name}]")
    if len({f.path for f in manifest.files}) != len(manifest.files):
        raise Invalid("duplicate_path", "two files of the scaffold have the same path")


def plan_command(manifest: ScaffoldManifest, context: PlanContext, values: Values) -> Plan:
    """Return the manifest's command with every template replaced. Raises Invalid for what no argument can hold."""
    variables = values.variables
    argv = [templates.render(text, variables) for text in manifest.argv]
    if manifest.prompt == "argument" and not any(_tells(t) for t in manifest.argv):
        argv.append(variables["prompt"])
    plain = {n: t for n, t in manifest.env.items() if t != templates.RUN_TOKEN}
    env = {name: templates.render(text, variables) for name, text in plain.items()}
    check_strings([*argv, *(f"{name}={value}" for name, value in env.items())])
    return Plan(
        argv=argv,
        env={**base_environment(context), **env},
        stdin=variables["prompt"].encode() if manifest.prompt == "stdin" else b"",
        files=[PlannedFile(f"{KIT_FILES}/{f.path}", f.sha256, 0o755) for f in manifest.files],
        parser="jsonl" if manifest.parser == "jsonl" else "text",
        token_variables=[n for n, t in manifest.env.items() if t == templates.RUN_TOKEN],
        stop=manifest.stop,
        hang_s=manifest.hang_s,
        provenance=values.provenance,
    )


def named_variables(manifest: ScaffoldManifest) -> set[str]:
    """Return the variables that argv and environment name."""
    return {name for text in (*manifest.argv, *manifest.env.values()) for name in templates.variables(text)}


def values_for(task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Values:
    """Return what the variables stand for in this run. Raises Invalid of prompts, models and efforts."""
    said = prompts.prompt_for(task, context)
    settings, effort = context.settings, None
    if manifest.dialect is not None:
        model = model_of(context, manifest.kind, [manifest.dialect])
        effort = resolve(settings, model, model.efforts)
    values = {
        "instruction": task.instruction,
        "instruction_file": context.instruction_file,
        "workspace": context.workspace,
        "output_dir": context.output_dir,
        "visible_files": "\n".join(f"{context.workspace}/{f.path}" for f in task.visible),
        "deadline_unix": str(context.deadline_unix),
        "seconds_left": str(int(context.seconds)),
        "sample": str(context.sample),
        "seed": str(zlib.crc32(f"{task.name}:{context.sample}".encode())),
        "prompt": said.text,
        "model": context.model.upstream_id if context.model is not None else agent.model or "",
        "effort": (effort.used if effort is not None else None) or "",
        "temperature": "" if settings.temperature is None else f"{settings.temperature:g}",
        "max_turns": "" if settings.max_turns is None else str(settings.max_turns),
        "gateway.anthropic": GATEWAY,
        "gateway.openai": f"{GATEWAY}/v1",
        "gateway.gemini": GATEWAY,
        "gateway.services": f"{GATEWAY}/services",
    }
    return Values(values, {**said.provenance(), **(effort.provenance() if effort is not None else {})})


def _tells(template: str) -> bool:
    return bool(templates.variables(template) & {"instruction", "prompt"})
