"""JobBench's result files: of a grading that is ours, and as a grading that was made elsewhere."""

from typing import Any

from service.domain import evidence
from service.domain.errors import Conflict, Invalid, NotFound, TooLarge
from service.domain.run_states import Phase
from service.domain.tasks import GraderSpec, TaskManifest, canonical_digest
from service.domain.verdicts import VerdictState
from service.graders.rubric_chain import result_file, rubrics_file
from service.graders.rubric_chain.rubrics_file import Rubric
from service.graders.strict_json import NotUsable, read_object
from service.store import combining, criteria, gradings, runs, tasks, votes
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.paging import MAX_LIMIT
from service.store.rows import CriterionRow, GradingRow
from service.store.votes import NewVote

METHOD = "rubric_chain"
_MOST_CHARS = 64 << 20


async def exported(tx: Tx, project_id: str, grading_id: str) -> tuple[str, dict[str, Any]]:
    """Return name and content of the grading's file.

    Raises NotFound, Conflict ``not_rubric_chain``, ``not_graded``, TooLarge ``export_too_large``.
    """
    row = await gradings.get(tx, project_id, grading_id)
    if row is None:
        raise NotFound("not_found")
    if row.method != METHOD:
        raise Conflict("not_rubric_chain", f"method {row.method} has no rubrics")
    if row.state is not VerdictState.GRADED or row.graded_at is None:
        raise Conflict("not_graded", f"the grading is {row.state}")
    run = await runs.load(tx, row.run_id)
    judge, implementation = _judge_of(row)
    rows = [_criterion(c) for c in await _all(tx, grading_id)]
    evaluated = str(row.detail.get("evaluated_model") or run.agent_label)
    file = result_file.written(
        rows, evaluated_model=evaluated, judge_model=judge, implementation=implementation, at=row.graded_at
    )
    return result_file.file_name(judge), file


async def rubrics_of(tx: Tx, project_id: str, run_id: str) -> str | None:
    """Return the digest of the run's task's rubrics; null where it has none. Raises NotFound."""
    run = await runs.get(tx, project_id, run_id)
    task = None if run is None else await tasks.get(tx, project_id, run.task_id)
    if task is None:
        raise NotFound("not_found")
    path = _rubrics_path(task.manifest)
    return next((f.sha256 for f in task.manifest.hidden if f.path == path), None)


def read_rubrics(blobs: BlobStore, digest: str | None) -> list[Rubric] | None:
    """Read the task's rubrics. Raises Invalid ``rubrics_unusable``. Blocks."""
    if digest is None:
        return None
    try:
        with blobs.open(digest) as stream:
            return rubrics_file.parse(read_object(stream))
    except (NotUsable, NotFound) as error:
        raise Invalid("rubrics_unusable", str(error)) from error


async def imported(tx: Tx, project_id: str, run_id: str, file: result_file.Imported, *, primary: bool) -> GradingRow:
    """Record the verdict as a grading of the run. One that does not count is recorded once, however often it is given.

    Raises Conflict ``run_not_sealed``.
    """
    await lock_run(tx, run_id)
    run = await runs.load(tx, run_id)
    if run.phase not in (Phase.GRADING, Phase.DONE) or run.deliverable_digest is None:
        raise Conflict("run_not_sealed", "the run has no sealed deliverable")
    round = await combining.last_round(tx, run_id) + 1 if primary else 1
    spec = GraderSpec(method=METHOD, settings=file.settings)
    versions = {METHOD: result_file.IMPORTED}
    [row] = await gradings.enqueue(tx, run, [spec], round, primary, versions=versions, queues={METHOD: "people"})
    await votes.put(tx, [NewVote(row.id, project_id, vote) for vote in file.votes])
    await gradings.finish(tx, row.id, file.verdict)
    found = await gradings.get(tx, project_id, row.id)
    assert found is not None
    return found


def _rubrics_path(task: TaskManifest) -> str:
    own = (
        str(spec.settings["rubrics"]) for spec in task.graders if spec.method == METHOD and "rubrics" in spec.settings
    )
    return next(own, "RUBRICS.json")


def _judge_of(row: GradingRow) -> tuple[str, dict[str, Any]]:
    """Return the judges' names and what stands for their implementation."""
    given = row.settings.get(result_file.IMPORTED)
    if isinstance(given, dict):
        return str(row.detail["judge_model"]), dict(row.detail.get("judge_implementation") or {})
    names = [str(judge["model"]) for judge in row.settings.get("judges", [])]
    made = {"method": row.method, "version": row.method_version, "settings": row.settings_digest}
    return "+".join(names), {
        "extraction_schema": f"workstead-{evidence.VERSION}",
        "sha256": canonical_digest(made),
    }


def _criterion(row: CriterionRow) -> dict[str, Any]:
    names = ("passed", "score", "max_score", "reason", "detail")
    return {"id": row.criterion, **{name: getattr(row, name) for name in names}}


async def _all(tx: Tx, grading_id: str) -> list[CriterionRow]:
    found: list[CriterionRow] = []
    chars = 0
    start = 0
    while True:
        page = await criteria.page(tx, grading_id, start, MAX_LIMIT)
        chars += sum(len(c.reason or "") + len(str(c.detail)) for c in page.items)
        if chars > _MOST_CHARS:
            raise TooLarge("export_too_large", f"the criteria have more than {_MOST_CHARS} characters")
        found += page.items
        if page.next is None:
            return found
        start = int(page.next[0])
