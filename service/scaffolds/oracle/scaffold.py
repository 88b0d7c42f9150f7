"""Scaffold kind ``oracle``: the host writes the hidden files below ``solution/`` where a deliverable belongs.

No agent runs: the command is ``true``. A solution file that names a collect root (``solution/output/a.csv`` where
``output`` is collected) lands there; any other lands below ``output``. Nothing else hidden enters the sandbox.

A solution that is a program, ``solution/solve.sh`` as imported task directories have it, is run in its place, with the
files below ``solution/`` beside it where nothing is collected.
"""

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds.contract import AgentReport, LineParser, Plan, PlanContext, PlannedFile
from service.scaffolds.environment import base_environment, refuse_command_fields

SOLUTION = "solution/"
PROGRAM = "solution/solve.sh"
PLACE = ".home/solution"


class OracleScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        refuse_command_fields(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del agent, manifest
        hidden = [f for f in task.hidden if f.path.startswith(SOLUTION)]
        if not hidden:
            raise Invalid("no_reference_solution", f"the task has no hidden file below {SOLUTION}")
        if any(f.path == PROGRAM for f in hidden):
            beside = [PlannedFile(f"{PLACE}/{f.path.removeprefix(SOLUTION)}", f.sha256) for f in hidden]
            argv = ["/bin/bash", f"{context.workspace}/{PLACE}/solve.sh"]
            return Plan(argv=argv, env=base_environment(context), files=beside, reference_solution=True)
        files = [PlannedFile(_target(f.path.removeprefix(SOLUTION), task.collect), f.sha256) for f in hidden]
        return Plan(argv=["/bin/true"], env=base_environment(context), files=files, reference_solution=True)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return None

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        del manifest, report
        return exit.code == 0


def _target(path: str, roots: list[str]) -> str:
    return path if any(path.startswith(f"{root}/") for root in roots) else f"output/{path}"
