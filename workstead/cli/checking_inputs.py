"""Whether the files that a task gives its agent open: a run that delivers them, and the integrity report of that."""

import asyncio
from collections.abc import Mapping, Sequence

from workstead.aio import AsyncClient
from workstead.cli.checking_report import Finding
from workstead.cli.watch import Show, note, watch
from workstead.models import Integrity, Run
from workstead.task_dir import Bundle

REPORT_S = 120.0
"""How long a report may take after its run."""
FOLDER = "inputs"
PLAN = "check-inputs"
OPENS = [{"method": "integrity", "settings": {"checks": ["opens"], "from_instruction": False}}]
"""In place of the task's graders: a copy of its inputs is nothing to pay judges for, and people are not waited for."""
_COPY = """\
cd /workspace && mkdir -p "$1/inputs" || exit 1
for entry in * .[!.]*; do
  case "$entry" in output | .home) continue ;; esac
  [ ! -e "$entry" ] || cp -R "$entry" "$1/inputs/" || exit 1
done
"""
SCAFFOLD = Bundle(
    {"name": "check-inputs", "version": "1", "argv": ["/bin/sh", "-c", _COPY, "sh", "{output_dir}"], "prompt": "file"}
)

Input = tuple[str, Finding]
"""(id of a task that has visible files, what was found of it)."""


async def check_inputs(client: AsyncClient, items: Sequence[Input], labels: Mapping[str, str], show: Show) -> None:
    """Run the copying agent on each task and note the files that do not open."""
    if not items:
        return
    agent = await client.agents.create((await client.scaffolds.register(SCAFFOLD)).ref)
    plan = await client.grading_plans.create(PLAN, {"graders": OPENS})
    started: dict[str, Finding] = {}
    runs: list[Run] = []
    for task_id, found in items:
        run = await client.runs.create(task_id, agent.id, labels=labels, plan=plan.plan)
        started[run.id] = found
        runs.append(run)
    note(f"{len(runs)} runs open the files of the tasks")
    for run in await watch(client, runs, show=show):
        started[run.id].runs["inputs"] = run.id
        judge(run, await _report(client, run.id), started[run.id])


async def _report(client: AsyncClient, run_id: str) -> Integrity:
    report = await client.runs.integrity(run_id)
    try:
        async with asyncio.timeout(REPORT_S):
            while report.state == "pending":
                await asyncio.sleep(0.5)
                report = await client.runs.integrity(run_id)
    except TimeoutError:
        return report
    return report


def judge(run: Run, report: Integrity, found: Finding) -> None:
    """Note what the report has against the task's files."""
    if report.state != "ready" or run.ended_because != "completed":
        found.remarks.append(f"its files were not opened ({report.cause or run.ended_because or report.state})")
        return
    for file in report.files:
        _, inside, path = file.path.partition(f"/{FOLDER}/")
        if inside and (file.opens is False or file.problems):
            found.suspicions.append(
                f"{path}: {', '.join(problem.type for problem in file.problems) or 'does not open'}"
            )
