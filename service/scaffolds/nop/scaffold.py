"""Scaffold kind ``nop``: a command that does nothing and succeeds."""

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds.contract import Plan, PlanContext
from service.scaffolds.environment import base_environment, refuse_command_fields


class NopScaffold:
    def check(self, manifest: ScaffoldManifest) -> None:
        refuse_command_fields(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        del task, agent, manifest
        return Plan(argv=["/bin/true"], env=base_environment(context))

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest) -> bool:
        del manifest
        return exit.code == 0
