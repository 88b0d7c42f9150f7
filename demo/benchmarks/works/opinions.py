"""What judges and forecasters of the synthetic sets say, as scenarios of the scripted provider: ``TARGET/models.toml``.

They look at what they are shown: a judge accepts what ends as a good work ends; what needs more than text a client refuses.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from demo.benchmarks.works.payworthy import Job
from demo.benchmarks.works.rli import MARKS, ORDER, WORKS
from workstead.cli.demo_model import toml

NUMBER = {"nonce": "{nonce}"}
CONTROL = {"check": {"reasoning": "It is not so.", "holds": False}}
TALK = "I would start by asking the client a few questions."
FIRST, SECOND = "The first work.", "The second work."
"""How a judge of pairs is told which work begins."""
_REFUSED = {"client_files": "missing_context", "client_systems": "harness_limit", "medium": "capability_gap"}
_CHANCE = {"self_contained": 0.84, "client_files": 0.44, "client_systems": 0.17, "medium": 0.31}
_SCALES = {
    "self_contained": (1, 4, 5, 0, 1),
    "client_files": (5, 3, 3, 0, 1),
    "client_systems": (4, 3, 2, 3, 0),
    "medium": (2, 2, 2, 1, 1),
}
Opinion = Mapping[str, Any]


def scenarios(jobs: Sequence[Job]) -> str:
    """Return the file: two judges of postings that do not always agree, two forecasters, a judge of pairs, a model
    that works."""
    made: dict[str, Iterator[Opinion]] = {
        "payworthy-judge": _judge(jobs, strict=False),
        "payworthy-strict": _judge(jobs, strict=True),
        "forecaster-sharp": _forecaster(jobs, sharp=True),
        "forecaster-blunt": _forecaster(jobs, sharp=False),
        "rli-judge": _pairs(),
        "rli-worker": _namer(),
    }
    parts = [f"[[scenario]]\nname = {toml(name)}\nopinions = {toml(list(said))}\n" for name, said in made.items()]
    return "\n".join(parts)


def accepted(job: Job, *, strict: bool) -> bool:
    """Tell whether a client would pay for the good work of a job."""
    return job.needs == "self_contained" or (not strict and job.needs == "medium" and job.n % 2 == 1)


def _judge(jobs: Sequence[Job], *, strict: bool) -> Iterator[Opinion]:
    yield _said(_vote(pays=False, reason="unverifiable"), ORDER.strip()[:40])
    for job in jobs:
        pays = accepted(job, strict=strict)
        yield _said(_vote(pays=pays, reason=None if pays else _REFUSED[job.needs]), job.mark)
    yield _said(_vote(pays=False, reason="no_deliverable", produced=False), TALK)
    yield _said(_vote(pays=False, reason="wrong_scope"))


def _vote(*, pays: bool, reason: str | None, produced: bool = True) -> dict[str, Any]:
    fields = {"on_spec": pays, "client_plausible": pays, "pay_worthy": pays, "fabricated": False}
    return {"reasoning": "As shown.", "produced": produced, **fields, "failure_reason": reason, **CONTROL}


def _forecaster(jobs: Sequence[Job], *, sharp: bool) -> Iterator[Opinion]:
    """The sharp one knows what each job needs; the blunt one is sure of everything, and says so."""
    for job in jobs:
        chance = _CHANCE[job.needs] + (job.n % 7 - 3) / 50 if sharp else 0.7 + (job.n * 5 % 13) / 50
        names = (
            "context_dependence",
            "verifiability",
            "autonomy_horizon",
            "tool_credential_surface",
            "deliverable_modality",
        )
        numbers = {"p_hat": round(chance, 3), **dict(zip(names, _SCALES[job.needs], strict=True))}
        yield _said({"reason": f"It needs: {job.needs}.", **numbers}, f"# {job.title}\n", '"reason": ')
        yield _said(numbers, f"# {job.title}\n")


def _namer() -> Iterator[Opinion]:
    """A model that works on projects: it can write, and nothing else."""
    title, reference = WORKS["public_903"]
    for name, data in reference().items():
        yield {"seen": [title], "say": f'<file name="{name}">\n{data.decode()}</file>'}
    yield {"seen": [], "say": f'<file name="answer.md">\n{TALK}\n</file>'}


def _pairs() -> Iterator[Opinion]:
    """Work without the part that its brief is about loses, in either place, as talk and orders do; everything else is called
    the same."""
    for mark in MARKS.values():
        yield _said(_pair("same"), FIRST, mark, SECOND, mark)
        yield _said(_pair("first"), FIRST, mark, SECOND)
        yield _said(_pair("second"), SECOND, mark)
    for sign in (TALK, ORDER.strip()[:40]):
        yield _said(_pair("second"), FIRST, sign, SECOND)
        yield _said(_pair("first"), SECOND, sign)
    yield _said(_pair("same"))


def _pair(better: str) -> dict[str, Any]:
    return {"reasoning": "As shown.", "completion": better, "quality": better, **CONTROL}


def _said(content: Mapping[str, Any], *seen: str) -> Opinion:
    return {"seen": list(seen), "say": json.dumps({**NUMBER, **content})}
