"""What the kinds without a program of ours share: somebody outside does the work."""

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds.contract import AgentReport, LineParser, Plan, PlanContext
from service.scaffolds.environment import base_environment, refuse_command_fields


class Undriven:
    """A sandbox in which nothing is started. ``completed`` reads the ending that the driver gave with ``finish``."""

    def check(self, manifest: ScaffoldManifest) -> None:
        refuse_command_fields(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del task, agent, manifest
        return Plan(argv=(), env=base_environment(context))

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return None

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        del manifest, report
        return exit.code == 0
