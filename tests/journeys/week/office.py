"""Five office jobs as rows with rubrics, the programs that solve them more or less well, and what the models of this week say."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.models.scripted.scenario import Action, Fault, FaultKind, FileText, Opinion, Scenario

ANSWER = "answer.md"
REFUSED = Fault(kind=FaultKind.STATUS, turn=None, status=404, wait_s=2.0)
AWAY = Fault(kind=FaultKind.STATUS, turn=None, status=503)
STRICT_ABOUT = "stock"
"""Job of which the second judge wants more than anybody delivered."""


@dataclass(frozen=True)
class Job:
    key: str
    category: str
    prompt: str
    given: str
    lines: tuple[str, str]
    """What a good work says: worth 3 and 1 points."""
    criteria: tuple[str, str]

    @property
    def work(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def row(self) -> dict[str, Any]:
        rubric = [{"criterion": c, "weight": w} for c, w in zip(self.criteria, (3, 1), strict=True)]
        return {
            "id": self.key, "prompt": self.prompt, "files": [f"files/{self.key}.csv"], "solution": [f"done/{self.key}/{ANSWER}"],
            "rubric": rubric, "facet.category": self.category, "price": 120, "currency": "USD", "human_hours": 1.5,
        }  # fmt: skip


JOBS = (
    Job("rent", "money", "Say what the office costs us a year.", "month,rent\n1,900\n2,900\n",
        ("The office costs 10800 a year.", "Only two months are in the table."),
        ("The yearly cost is stated", "The gap in the table is named")),
    Job("stock", "goods", "Count what is left of each tool.", "tool,left\nsaw,3\ndrill,0\n",
        ("Three saws are left and no drill.", "The drill is to be ordered."),
        ("What is left is stated for each tool", "An order is proposed")),
    Job("rota", "people", "Say who works on Friday.", "day,who\nFriday,Ada\nFriday,Bo\n",
        ("Ada and Bo work on Friday.", "Nobody stands in for them."),
        ("Both people are named", "The missing stand-in is named")),
    Job("letter", "people", "Answer the complaint in the table.", "who,what\nCy,late parcel\n",
        ("Dear Cy, your parcel was late and we are sorry.", "We pay the postage back."),
        ("The letter says sorry for the parcel", "Something is offered")),
    Job("route", "goods", "Find the shorter way.", "way,km\nnorth,14\nsouth,11\n",
        ("The south way is shorter.", "It saves 3 km."),
        ("The shorter way is named", "The difference is stated")),
)  # fmt: skip
SOLVER = """\
import json, pathlib, sys
part, instruction, output = sys.argv[1:]
text = pathlib.Path(instruction).read_text()
known = json.loads(pathlib.Path(__file__).with_name("jobs.json").read_text())
lines = next((lines for prompt, lines in known.items() if prompt in text), ["ready", "ready"])
folder = pathlib.Path(output)
folder.mkdir(parents=True, exist_ok=True)
(folder / "answer.md").write_text("".join(line + "\\n" for line in lines[slice(*map(int, part.split(":")))]))
"""
PARTS = {"careful": "0:2", "hasty": "1:2"}
"""Program → which of the two lines it delivers."""


def write_set(folder: Path) -> Path:
    """Write the set as ``rows`` reads it; return its table."""
    for job in JOBS:
        for path, text in ((f"files/{job.key}.csv", job.given), (f"done/{job.key}/{ANSWER}", job.work)):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    table = folder / "office.jsonl"
    table.write_text("".join(f"{json.dumps(job.row)}\n" for job in JOBS))
    return table


def write_scaffolds(folder: Path) -> list[Path]:
    """Write manifests of the reference, of the two programs, with their files beside them."""
    (folder / "solve.py").write_text(SOLVER)
    (folder / "jobs.json").write_text(json.dumps({job.prompt: job.lines for job in JOBS}))
    files = [{"path": name, "source": name} for name in ("solve.py", "jobs.json")]
    manifests: list[dict[str, Any]] = [{"name": "reference", "version": "1", "kind": "oracle"}]
    for name, part in PARTS.items():
        argv = ["python3", "/workspace/.home/kit/solve.py", part, "{instruction_file}", "{output_dir}"]
        manifests.append({"name": name, "version": "1", "kind": "command", "argv": argv, "files": files})
    found: list[Path] = []
    for manifest in manifests:
        found.append(folder / f"{manifest['name']}.json")
        found[-1].write_text(json.dumps(manifest))
    return found


def writes(job: Job, lines: int) -> Opinion:
    said = "".join(f"{line}\n" for line in job.lines[:lines])
    return Opinion(seen=[job.prompt], say=f'<file name="{ANSWER}">\n{said}</file>')


def author(name: str, lines: int) -> Scenario:
    """A model that answers each job with its first ``lines`` lines; of a job that it does not know it delivers a word."""
    return Scenario(
        name=name,
        opinions=[writes(job, lines) for job in JOBS],
        answers=['<file name="ready.txt">\nready\n</file>'],
    )


def worker(*, for_ever: bool = False) -> Scenario:
    """A model with tools that writes what it knows of all jobs; and then, as a runaway does, looks about for ever."""
    text = "".join(job.work for job in JOBS)
    write = Action(write=FileText(path=f"/workspace/output/{ANSWER}", text=text))
    about = [Action(run="ls /workspace; sleep 0.5")] if for_ever else []
    return Scenario(name="worker", steps=[write, *about], endless=for_ever)


def judge(name: str, *, strict: bool = False) -> Scenario:
    """A judge who finds what a criterion asks for, wherever it stands."""
    return Scenario(name=name, opinions=list(_opinions(strict)), final="I would rather not say.")


def _opinions(strict: bool) -> Iterator[Opinion]:
    for job in JOBS:
        for number, (line, criterion) in enumerate(zip(job.lines, job.criteria, strict=True)):
            if not (strict and job.key == STRICT_ABOUT and number == 1):
                yield Opinion(seen=[criterion, line], say=_vote(passed=True))
                yield Opinion(seen=[line, criterion], say=_vote(passed=True))
            yield Opinion(seen=[criterion], say=_vote(passed=False))


def _vote(*, passed: bool) -> str:
    one = {"index": 1, "reasoning": "As shown.", "evidence": ANSWER, "passed": passed}
    return json.dumps(
        {
            "nonce": "{nonce}",
            "criteria_results": [one],
            "control": {"reasoning": "It is not so.", "holds": False},
            "overall_reasoning": "As shown.",
            "rubric_passed": passed,
        }
    )


def refusing() -> Scenario:
    """A provider that does not know the model that it is asked for."""
    return Scenario(name="unknown-model", faults=[REFUSED])
