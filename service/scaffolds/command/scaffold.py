"""Scaffold kind ``command``: no shell is involved; each template of ``argv`` becomes exactly one argument."""

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.limits import KIB
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import templates
from service.scaffolds.contract import AgentReport, LineParser, Plan, PlanContext, PlannedFile
from service.scaffolds.environment import base_environment, check_name

KIT_FILES = ".home/kit"
"""Folder below /workspace where the manifest's files lie."""
MAX_ARGUMENT_BYTES = 128 * KIB - 1
"""The kernel's limit on one argument or environment string (MAX_ARG_STRLEN), without its final NUL."""


class CommandScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        if not manifest.argv:
            raise Invalid("argv_missing", "a scaffold of kind 'command' needs argv")
        for i, text in enumerate(manifest.argv):
            templates.check_template(text, where=f"argv[{i}]")
        for name, text in manifest.env.items():
            check_name(name)
            templates.check_template(text, where=f"env[{name}]")
        if len({f.path for f in manifest.files}) != len(manifest.files):
            raise Invalid("duplicate_path", "two files of the scaffold have the same path")

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent
        values = _values(task, context)
        argv = [templates.render(text, values) for text in manifest.argv]
        if manifest.prompt == "argument" and not any("instruction" in templates.variables(t) for t in manifest.argv):
            argv.append(task.instruction)
        env = {name: templates.render(text, values) for name, text in manifest.env.items()}
        _check_sizes([*argv, *(f"{name}={value}" for name, value in env.items())])
        return Plan(
            argv=argv,
            env={**base_environment(context), **env},
            stdin=task.instruction.encode() if manifest.prompt == "stdin" else b"",
            files=[PlannedFile(f"{KIT_FILES}/{f.path}", f.sha256, 0o755) for f in manifest.files],
            parser=manifest.parser,
        )

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return None

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        del report
        return exit.signal is None and exit.code in manifest.outcome.exit_codes


def _values(task: TaskManifest, context: PlanContext) -> dict[str, str]:
    return {
        "instruction": task.instruction,
        "instruction_file": context.instruction_file,
        "workspace": context.workspace,
        "output_dir": context.output_dir,
        "deadline_unix": str(context.deadline_unix),
        "seconds_left": str(int(context.seconds)),
        "sample": str(context.sample),
    }


def _check_sizes(strings: list[str]) -> None:
    for text in strings:
        if "\0" in text:
            raise Invalid(
                "nul_in_argument", "an instruction with a NUL character cannot be an argument; use prompt 'file'"
            )
        if len(text.encode()) > MAX_ARGUMENT_BYTES:
            detail = f"an argument would have more than {MAX_ARGUMENT_BYTES} bytes; use prompt 'stdin' or 'file'"
            raise Invalid("argument_too_long", detail)
