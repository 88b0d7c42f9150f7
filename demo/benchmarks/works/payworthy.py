"""The synthetic postings in PayWorthy's form: a folder per item with posting, metadata, facts and one solver's work.

Everything that differs between two jobs but their matter (terms, opening, closing, split) is drawn by their place in the list.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.benchmarks.works.media import workbook
from demo.benchmarks.works.rli import Files, made_worse

JOBS = "payworthy.json"
"""In the kit of the solver: title → what a good answer says."""
_OPENINGS = (
    "Hello! We are a small team and do this for the first time, so please ask little and deliver much.",
    "Looking for somebody careful. Price matters less than being able to use the result as it is.",
    "This must be done by the end of next week; earlier is welcome.",
    "Third attempt: two people took this on and went silent. Please answer only if you will finish it.",
    "We have a clear picture of what we need, and it is all below.",
)
_CLOSINGS = (
    "Files only, please; we do not need a call.",
    "Tell us openly what you could not do. That costs you nothing with us, the opposite does.",
    "We pay on the day on which we could use it.",
    "If it is good, there is more of the same kind.",
)
_DURATIONS = ("Less than 1 week", "Less than 1 month", "1 to 3 months", "3 to 6 months")
_TIERS = ("Entry", "Intermediate", "Expert")
_BUDGETS = (45, 60, 80, 120, 150, 200, 260, 400, 650, 1200)
_RATES = ((12, 18), (15, 25), (20, 35), (30, 55), (None, None))


@dataclass(frozen=True, slots=True)
class Job:
    """One posting. ``must``: without these parts of ``work`` no client would pay."""

    n: int
    title: str
    category: str
    sub: str
    needs: str
    skills: Sequence[str]
    want: str
    work: str
    must: Sequence[str]

    @property
    def item_id(self) -> str:
        return hashlib.sha256(f"{self.title}\n{self.want}".encode()).hexdigest()[:24]

    @property
    def mark(self) -> str:
        """The end of a good work: neither the posting nor a worse work has it."""
        return self.work.splitlines()[-1][-28:]

    @property
    def tools(self) -> bool:
        """Whether the tool agent has it too: every fourth job, with a client who can be asked."""
        return self.n % 4 == 1


def read_jobs(path: Path) -> list[Job]:
    found: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["job"]
    return [Job(n, **job) for n, job in enumerate(found)]


def posting(job: Job) -> dict[str, Any]:
    """Return ``posting.json``: what the client wrote."""
    opening, closing = _OPENINGS[job.n % len(_OPENINGS)], _CLOSINGS[job.n % len(_CLOSINGS)]
    return {"title": job.title, "description": f"{opening}\n\n{job.want}\n\n{closing}", "skills": list(job.skills)}


def metadata(job: Job) -> dict[str, Any]:
    """Return ``metadata.json``: terms, categories, and what people found out about the job."""
    turn = job.n // 2
    low, high = _RATES[turn % len(_RATES)]
    paid = {"budget": _BUDGETS[turn % len(_BUDGETS)]} if job.n % 2 == 0 else {"hourly_min": low, "hourly_max": high}
    return {
        "item_id": job.item_id,
        "pay_type": "fixed" if job.n % 2 == 0 else "hourly",
        **paid,
        "duration": _DURATIONS[turn % len(_DURATIONS)],
        "expertise": _TIERS[job.n % len(_TIERS)],
        "category": job.category,
        "category_2": job.sub,
        "posted_at": f"2025-{1 + job.n % 6:02}-{1 + job.n % 28:02}",
        "needs": job.needs,
        "text_kind": "surrogate",
        "split": ["benchmark", *(["subset400"] if job.n % 3 == 0 else []), *(["tool500"] if job.tools else [])],
    }


def facts(job: Job) -> str:
    """Return what only the client knows, as far as the job leads to questions."""
    return (
        f"- You posted: {job.title}.\n- You can tell and paste text; you cannot send files and give nobody access to anything.\n"
        f"- What matters most to you: {job.must[0]}; and then: {job.must[1]}.\n- You answer in two sentences at most.\n"
    )


def solved(job: Job) -> Files:
    """Return what the benchmark's own solver handed in: right for most jobs that need nothing from the client."""
    variant = "right" if job.needs == "self_contained" and job.n % 5 else ("partial", "wrong", "hostile")[job.n % 3]
    return worse(job.work, variant, job.n)


def worse(work: str, variant: str, n: int = 0) -> Files:
    """Return a work of this quality, as files of a kind that goes with the job."""
    if n % 5 == 3:
        lines: list[list[str | float]] = [[line] for line in work.splitlines()]
        files: Files = {"work.xlsx": workbook(lines), "note.md": b"All in one sheet.\n"}
    else:
        files = {"work.md": work.encode() + b"\n"}
    if variant == "partial":
        return {"work.md": work.encode()[: len(work) // 4]}
    return made_worse(files, variant)


def delivered(title: str, variant: str, jobs: Mapping[str, str]) -> Files:
    """Return the files of a work of this quality. Raises KeyError for a title of another set."""
    return worse(jobs[title], variant)


def kit_jobs(jobs: Sequence[Job]) -> str:
    return json.dumps({job.title: job.work for job in jobs}, indent=1)
