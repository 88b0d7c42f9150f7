"""Scaffold kind ``command``: no shell is involved; each template of ``argv`` becomes exactly one argument."""

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.scaffolds import from_manifest
from service.scaffolds.command.mapped import MappedReader, check_mapping
from service.scaffolds.contract import AgentReport, LineParser, Plan, PlanContext


class CommandScaffold:
    driver = Driver.KIT

    def check(self, manifest: ScaffoldManifest) -> None:
        from_manifest.check_command(manifest)
        if manifest.parser == "json" and not manifest.mapping:
            raise Invalid("mapping_missing", "parser 'json' says nothing without a mapping")
        check_mapping(manifest)

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        return from_manifest.plan_command(manifest, context, from_manifest.values_for(task, agent, manifest, context))

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
