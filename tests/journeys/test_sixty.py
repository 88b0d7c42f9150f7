"""The sixty tasks of Freelance in real sandboxes: each solved, and each done badly in one of four ways."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from demo.benchmarks.gigs import make
from tests.journeys.stack import Stack
from workstead.importers.contract import ImportOptions
from workstead.importers.registry import importer_for
from workstead.models import Run
from workstead.sync import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
SMALL = {
    "memory_bytes": "268435456",
    "disk_bytes": "67108864",
    "cpus": "1",
    "wall_clock_s": "60",
    "environment": "workbench",
}
FIRST_ANSWERS = 700
"""Key of the first task of shape B."""
BAD = ("partial", "wrong", "hostile", "broken")
# (shape, variant) → points of all, and what is said of the tests that are not passed. On a busy machine the hostile program's
# search through the disk may take all of a test's time.
WANTED: dict[tuple[str, str], tuple[tuple[float, float], set[str | None]]] = {
    ("a", "right"): ((4, 4), {None}),
    ("a", "partial"): ((2, 4), {None, "no_output"}),
    ("a", "wrong"): ((0, 4), {"wrong_answer"}),
    ("a", "hostile"): ((0, 4), {"runner_killed", "timeout"}),
    ("a", "broken"): ((0, 4), {"compile_error"}),
    ("b", "right"): ((100, 100), {None}),
    ("b", "partial"): ((40, 100), {None, "wrong_answer"}),
    ("b", "wrong"): ((0, 100), {"wrong_answer", "unparsable_answer"}),
    ("b", "hostile"): ((0, 100), {"wrong_answer", "unparsable_answer"}),
    ("b", "broken"): ((0, 100), {"unparsable_answer"}),
}


@dataclass(frozen=True)
class Done:
    shape: str
    variant: str
    run: Run
    causes: Counter[str | None]
    """Of its tests; null: passed."""


@pytest.fixture(scope="module")
def client(service: Stack) -> Iterator[Client]:
    with Client(service.url, service.token) as made:
        yield made


@pytest.fixture(scope="module")
def done(client: Client, tmp_path_factory: pytest.TempPathFactory) -> list[Done]:
    root = tmp_path_factory.mktemp("sixty")
    make.make(root)
    make.make_scaffolds(root / "scaffolds")
    importer = importer_for("freelance")
    assert importer is not None
    with importer.read(root / "sixty.json", ImportOptions(name="sixty", settings=SMALL)) as found:
        benchmark = client.benchmarks.create(found.manifest, found.files)
    agents = {
        variant: client.agents.create(client.scaffolds.register(root / f"scaffolds/gigs-{variant}.json").ref).id
        for variant in ("right", *BAD)
    }
    runs: list[tuple[str, str, Run]] = []
    for n, item in enumerate(client.benchmarks.items(benchmark.id)):
        assert item.task is not None
        made = {variant: client.runs.create(item.task.id, agents[variant]) for variant in ("right", BAD[n % len(BAD)])}
        shape = "a" if int(item.key) < FIRST_ANSWERS else "b"
        runs += [(shape, variant, run) for variant, run in made.items()]
    return [_ended(client, *one) for one in runs]


def _ended(client: Client, shape: str, variant: str, run: Run) -> Done:
    ended = client.runs.wait(run.id)
    causes = Counter(c.cause for grading in client.runs.gradings(run.id) for c in grading.criteria or [])
    return Done(shape, variant, ended, causes)


def test_each_is_graded_and_none_failed_by_our_doing(done: list[Done]) -> None:
    assert Counter((one.run.outcome, one.run.ended_because) for one in done) == {("graded", "completed"): 120}
    counts = Counter(one.variant for one in done)
    assert counts == {"right": 60, **dict.fromkeys(BAD, 15)}
    assert {(one.shape, one.variant) for one in done} == set(WANTED)


def test_points_and_causes_are_those_of_the_work(done: list[Done]) -> None:
    for one in done:
        points, causes = WANTED[one.shape, one.variant]
        where = (one.shape, one.variant, one.run.task.name, one.causes)
        assert (one.run.verdict.score, one.run.verdict.max_score) == points, where
        assert one.run.verdict.passed is (one.variant == "right"), where
        assert set(one.causes) <= causes, where
    killed = [one for one in done if (one.shape, one.variant) == ("a", "hostile")]
    assert sum(one.causes["runner_killed"] for one in killed) > sum(one.causes["timeout"] for one in killed)
