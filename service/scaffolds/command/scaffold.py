"""Scaffold kind ``command``: no shell is involved; each template of ``argv`` becomes exactly one argument."""

import zlib

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import prompts, templates
from service.scaffolds.command.mapped import MappedReader, check_mapping
from service.scaffolds.contract import GATEWAY, AgentReport, LineParser, Plan, PlanContext, PlannedFile
from service.scaffolds.efforts import resolve
from service.scaffolds.environment import base_environment, check_name
from service.scaffolds.programs import check_strings, model_of

KIT_FILES = ".home/kit"
"""Folder below /workspace where the manifest's files lie."""


class CommandScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        if not manifest.argv:
            raise Invalid("argv_missing", "a scaffold of kind 'command' needs argv")
        for i, text in enumerate(manifest.argv):
            templates.check_template(text, where=f"argv[{i}]")
        for name, text in manifest.env.items():
            check_name(name)
            if text != templates.RUN_TOKEN:
                templates.check_template(text, where=f"env[{name}]")
        if len({f.path for f in manifest.files}) != len(manifest.files):
            raise Invalid("duplicate_path", "two files of the scaffold have the same path")
        if manifest.parser == "json" and not manifest.mapping:
            raise Invalid("mapping_missing", "parser 'json' says nothing without a mapping")
        check_mapping(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        values, provenance = _values(task, agent, manifest, context)
        argv = [templates.render(text, values) for text in manifest.argv]
        if manifest.prompt == "argument" and not any(_tells(t) for t in manifest.argv):
            argv.append(values["prompt"])
        plain = {n: t for n, t in manifest.env.items() if t != templates.RUN_TOKEN}
        env = {name: templates.render(text, values) for name, text in plain.items()}
        check_strings([*argv, *(f"{name}={value}" for name, value in env.items())])
        return Plan(
            argv=argv,
            env={**base_environment(context), **env},
            stdin=values["prompt"].encode() if manifest.prompt == "stdin" else b"",
            files=[PlannedFile(f"{KIT_FILES}/{f.path}", f.sha256, 0o755) for f in manifest.files],
            parser="jsonl" if manifest.parser == "jsonl" else "text",
            token_variables=[n for n, t in manifest.env.items() if t == templates.RUN_TOKEN],
            stop=manifest.stop,
            hang_s=manifest.hang_s,
            provenance=provenance,
        )

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        return MappedReader(manifest) if manifest.mapping else None

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        if exit.signal is not None:
            return False
        said = (report.status if report is not None else None) or "none"
        for rule in manifest.outcome.rules:
            codes, statuses = rule.exit_codes, rule.final_status
            if (not codes or exit.code in codes) and (not statuses or said in statuses):
                return rule.completed
        return exit.code in manifest.outcome.exit_codes


def _tells(template: str) -> bool:
    return bool(templates.variables(template) & {"instruction", "prompt"})


def _values(
    task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext
) -> tuple[dict[str, str], dict[str, object]]:
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
    return values, {**said.provenance(), **(effort.provenance() if effort is not None else {})}
