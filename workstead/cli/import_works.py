"""Works that a source brings along, graded with no run of ours."""

import uuid
from collections.abc import Callable, Mapping

from workstead.importers.contract import Delivered, Imported
from workstead.models import Benchmark
from workstead.sync import Client

UPLOAD = "upload"
"""The agent that every project has for this."""


def grade_works(
    client: Client, benchmark: Benchmark, imported: Imported, agent: str, told: Callable[[int, int], None]
) -> list[str]:
    """Have every work graded as one of ``agent``, each once however often it is asked for; return the keys left out.

    Left out are those whose item has no task, as the service refused it. Raises NotFound, Problem, OSError.
    """
    tasks = {item.key: item.task.id for item in client.benchmarks.items(benchmark.id) if item.task is not None}
    left_out = [work.key for work in imported.delivered if work.key not in tasks]
    works = [work for work in imported.delivered if work.key in tasks]
    for done, work in enumerate(works, 1):
        sources = {ref["sha256"]: imported.works[ref["sha256"]] for ref in work.files}
        key = _once(tasks[work.key], agent, work)
        labels = {"benchmark": benchmark.name[:200], "imported": "work"}
        client.deliverables.grade_files(
            tasks[work.key], work.files, sources, agent=None if agent == UPLOAD else agent, labels=labels, key=key
        )
        told(done, len(works))
    return left_out


def _once(task: str, agent: str, work: Delivered) -> str:
    files: list[Mapping[str, object]] = sorted(work.files, key=lambda ref: str(ref["path"]))
    said = "\n".join([task, agent, *(f"{ref['path']} {ref['sha256']}" for ref in files)])
    return str(uuid.uuid5(uuid.NAMESPACE_URL, said))
