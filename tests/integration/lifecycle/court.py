"""A court for gradings by judges: a sealed run, a judge at the wire behind a Unix socket, and a method that only polls."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from service.domain.grading_plans import GradingQueue
from service.domain.judging import JudgeSpec, VoteState
from service.domain.models import ModelSpec
from service.domain.tasks import GraderSpec, TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import GraderFault, GradingInput, InvalidVote, Question
from service.lifecycle.grade import GradeContext
from service.lifecycle.grading_context import Patience
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.judging import Judging
from service.lifecycle.operations.contract import OwnWay
from service.lifecycle.vote_writer import VoteWriter
from service.store import gradings, models, runs, votes
from service.store.rows import GradingRow, RunRow
from service.store.rows_grading import VoteRow
from service.store.tables import gradings as table
from tests.fixtures.judge_server import JudgeServer
from tests.integration.lifecycle.stage import Stage
from tests.integration.models.pipe import piped

METHOD = "polls"
JUDGE = JudgeSpec(model="test/judge")
QUICK = Patience(first_s=0.05, longest_s=0.2)


def says(body: dict[str, Any]) -> str:
    """The judge's answer: what it was asked."""
    return json.dumps({"yes": body["messages"][-1]["content"][0]["text"]})


class Polls:
    """Asks each judge ``votes`` times on ``items`` items, all at once; a point for each valid vote."""

    method, version = METHOD, "1"
    queue: GradingQueue = "judges"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        del settings, task

    async def grade(self, given: GradingInput) -> Verdict:
        assert given.judges is not None
        assert given.keep is not None
        judges = [JudgeSpec.model_validate(one) for one in given.settings["judges"]]
        found = await asyncio.gather(*(
            given.judges.vote(judge, f"r{item}", n, question_of(item), read, asks=2)
            for judge in judges for item in range(given.settings["items"]) for n in range(1, given.settings["votes"] + 1)
        ))  # fmt: skip
        if given.settings.get("strict") and any(vote.state is VoteState.INVALID for vote in found):
            raise GraderFault("judge_error", "one vote is none")
        rows = [{"id": f"{v.item}.{v.n}", "passed": v.state is VoteState.VALID, "cause": v.cause} for v in found]
        await given.keep(0, rows[:1])
        score = sum(vote.state is VoteState.VALID for vote in found)
        return Verdict(VerdictState.GRADED, float(score), float(len(found)), criteria=rows)


def question_of(item: int) -> Callable[[int], Question]:
    return lambda nth: Question("Say yes.", f"item {item} try {nth}", "polls@1", "the template")


def read(text: str) -> dict[str, Any]:
    try:
        return {"yes": json.loads(text)["yes"]}
    except (ValueError, KeyError) as error:
        raise InvalidVote("schema") from error


@dataclass
class Court:
    stage: Stage
    server: JudgeServer
    way: OwnWay
    judging: Judging
    run: RunRow

    @classmethod
    @asynccontextmanager
    async def open(cls, stage: Stage, folder: Path) -> AsyncGenerator["Court"]:
        (folder / "service-token").write_text("of-our-own-processes\n")
        with JudgeServer(says) as server:
            async with piped(folder / "judges.sock", server.port):
                way = OwnWay(folder / "judges.sock", folder / "service-token")
                judging = judging_of(stage, way)
                made = cls(stage, server, way, judging, await _sealed(stage))
                await made.add_model("test/judge")
                try:
                    yield made
                finally:
                    await judging.close()

    async def add_model(self, name: str, **fields: Any) -> None:
        spec = ModelSpec.model_validate(self.server.model(name, **fields))
        async with self.stage.db.transaction() as tx:
            await models.create(tx, self.stage.project.id, spec, private=True)

    def context(self, **changes: Any) -> GradeContext:
        ctx = GradeContext(
            self.stage.db, self.stage.blobs, first_pause_s=0.01, judging=self.judging, patience=QUICK, tries=2
        )
        return replace(ctx, **changes)

    async def enqueue(self, round: int = 1, **settings: Any) -> GradingRow:
        asked = {"judges": [{"model": "test/judge"}], "items": 3, "votes": 1, **settings}
        async with self.stage.db.transaction() as tx:
            specs = [GraderSpec(method=METHOD, settings=asked)]
            (row,) = await gradings.enqueue(tx, self.run, specs, round=round, queues={METHOD: "judges"})
        return row

    async def row(self, grading_id: str) -> GradingRow:
        async with self.stage.db.reading() as tx:
            found = await gradings.get(tx, self.stage.project.id, grading_id)
        assert found is not None
        return found

    async def make_due(self, grading_id: str) -> None:
        async with self.stage.db.transaction() as tx:
            await tx.execute(table.update().where(table.c.id == grading_id).values(not_before=None))

    async def votes(self, grading_id: str) -> list[VoteRow]:
        async with self.stage.db.reading() as tx:
            return (await votes.page(tx, grading_id, None, 500)).items


def judging_of(stage: Stage, way: OwnWay, turns: Turns | None = None) -> Judging:
    """Return a process's way to the judges."""
    calls = JudgeCalls(stage.db, way, turns or Turns(32))
    return Judging(stage.db, calls, VoteWriter(stage.db, stage.blobs))


async def _sealed(stage: Stage) -> RunRow:
    run = await stage.submit(await stage.task(graders=[]), await stage.agent())
    await stage.work(stage.context(), run.id)
    async with stage.db.reading() as tx:
        return await runs.load(tx, run.id)
