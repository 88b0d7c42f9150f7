"""The pages of raters: the way in, the item in hand with its files, and what there is between items.

They show what :mod:`service.lifecycle.campaigns.showing` gives for an assignment and know nothing else of it.
"""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from service.dashboard import rating_files
from service.dashboard.pages import HEADERS, page
from service.dashboard.visitor import dashboard_of, rating_of
from service.domain.campaigns import CampaignState, Form
from service.domain.errors import Unauthenticated
from service.domain.evidence import EvidenceFile, EvidenceState
from service.domain.integrity import NOT_THE_FILES
from service.lifecycle.campaigns.showing import Shown, ShownFile, Side, show
from service.store.campaigns import assignments, campaigns
from service.store.clock import now
from service.store.database import Tx
from service.store.rows_campaigns import AssignmentRow, CampaignRow, RaterRow

router = APIRouter(include_in_schema=False)
_TITLES = {
    "inputs": "Inputs", "reference": "Reference, made by a person", "deliverable": "Deliverable",
    "a": "Deliverable A", "b": "Deliverable B",
}  # fmt: skip
_TAGS = (
    ("technical_integrity", "Files corrupt, empty, of the wrong kind", "t"),
    ("incomplete", "Incomplete or malformed", "i"),
    ("poor_quality", "Poor quality", "p"),
    ("inconsistent", "Inconsistent", "c"),
    ("cannot_open", "I could not open it", "o"),
)
_SCALES = (
    ("completion", "Closer to what the brief asks for", ("1", "2", "3")),
    ("quality", "Better work on the whole", ("4", "5", "6")),
)
_OVER = {
    CampaignState.DRAFT: ("Not begun yet", "This campaign is not open yet. Come back later with this browser."),
    CampaignState.CLOSED: ("Closed", "This campaign is closed. Thank you."),
}


@dataclass(frozen=True, slots=True)
class Pane:
    side: str
    title: str
    files: list["Listed"]
    main: bool
    nothing: str
    problems: str

    @property
    def first(self) -> int | None:
        """Number of the file that is shown at first: one that can be read or run, else whichever is first."""
        best = min(self.files, key=lambda f: (f.order, f.n), default=None)
        return None if best is None else best.n


@dataclass(frozen=True, slots=True)
class Listed:
    n: int
    folder: str
    name: str
    size_bytes: int
    problems: list[str]
    order: int


@dataclass(frozen=True, slots=True)
class Work:
    """What the page needs of the assignment in hand."""

    id: str
    brief: str
    note: str | None
    inputs: Pane
    panes: list[Pane]
    elapsed_s: float
    active_s: float


@router.get("/rate")
async def entrance(over: str | None = None) -> Response:
    """Take the code of an invitation, from the address's fragment or typed."""
    return page("rate.html", over=over is not None)


@router.get("/rate/work")
async def work_page(request: Request, none: str | None = None) -> Response:
    """Show what the rater has in hand, or what there is to do next."""
    rater = await _rater(request)
    if rater is None:
        return _to_entrance()
    dashboard = dashboard_of(request)
    async with dashboard.db.reading() as tx:
        campaign = await campaigns.get(tx, rater.project_id, rater.campaign_id)
        if campaign is None:
            return _to_entrance()
        held = await assignments.held(tx, rater.id) if campaign.state is CampaignState.OPEN else None
        shown = await show(tx, rating_of(request).blobs, campaign, rater, held) if held is not None else None
        work = None if shown is None else _work(shown, await _elapsed(tx, shown.assignment))
        mine = await assignments.of_rater_all(tx, rater.id)
    done = sum(a.state == "submitted" for a in mine)
    return page(
        "rating.html",
        headers=_headers(request),
        work=work,
        done=done,
        **_of_campaign(campaign, rater, none is not None),
    )


@router.get("/rate/work/{assignment_id}/files/{n}")
async def file_page(request: Request, assignment_id: str, n: int) -> Response:
    """Show one file of the assignment in hand; the page puts it beside the others."""
    rater = await _rater(request)
    if rater is None:
        return _to_entrance()
    dashboard = dashboard_of(request)
    async with dashboard.db.reading() as tx:
        shown = await _shown(tx, request, rater, assignment_id)
    file = next((f for f in shown.files if f.n == n), None) if shown else None
    if shown is None or file is None:
        return page("problem.html", 404, title="No such file", detail="It is not part of what you have in hand.")
    side = next(s for s in shown.sides if any(f.n == n for f in s.files))
    values = await asyncio.to_thread(_file, request, shown, side, file)
    return page("rating_file.html", headers=_headers(request), **values)


async def _rater(request: Request) -> RaterRow | None:
    try:
        return await rating_of(request).identify(request)
    except Unauthenticated:
        return None


def _to_entrance() -> Response:
    return RedirectResponse("/rate?over=1", 303, {"Cache-Control": "no-store"})


async def _shown(tx: Tx, request: Request, rater: RaterRow, assignment_id: str) -> Shown | None:
    """Return what there is to see of an assignment, if the rater has it in hand."""
    held = await assignments.held(tx, rater.id)
    campaign = await campaigns.get(tx, rater.project_id, rater.campaign_id)
    if held is None or held.id != assignment_id or campaign is None:
        return None
    return await show(tx, rating_of(request).blobs, campaign, rater, held)


async def _elapsed(tx: Tx, held: AssignmentRow) -> float:
    """Return the seconds since the rater got the item, former leases of it included."""
    return held.wall_s + max(0.0, ((await now(tx)) - held.started_at).total_seconds())


def _headers(request: Request) -> dict[str, str]:
    """Media of our own, and frames of previews only: wherever a document in one wants to go, it stays below them."""
    frames = " ".join(f"{origin}/preview/" for origin in rating_of(request).previews(request))
    policy = f"{HEADERS['Content-Security-Policy']}; media-src 'self'; frame-src {frames}"
    return HEADERS | {"Content-Security-Policy": policy}


def _standing(campaign: CampaignRow, rater: RaterRow, *, nothing: bool) -> tuple[str, str | None, bool]:
    """Return what is so between items, as title and sentence, and whether the rater may ask for the next one."""
    if campaign.state is not CampaignState.OPEN:
        return *_OVER[campaign.state], False
    if rater.qualified is False:
        return (
            "Thank you",
            "Your trial ratings were too far from those expected: there is nothing further for you.",
            False,
        )
    if nothing:
        return (
            "Nothing left for now",
            "Thank you. An item may still come back or need another opinion: look later.",
            True,
        )
    if campaign.spec.qualification is not None and rater.qualified is None:
        return "Ready", f"The first items are a trial, {len(campaign.spec.qualification.golds)} in all.", True
    return "Ready", None, True


def _of_campaign(campaign: CampaignRow, rater: RaterRow, nothing: bool) -> dict[str, Any]:
    title, sentence, may_start = _standing(campaign, rater, nothing=nothing)
    return {
        "rater_id": rater.id,
        "title": title,
        "sentence": sentence,
        "may_start": may_start,
        "form": campaign.form.value,
        "instruction": campaign.instruction,
        "instruction_version": campaign.instruction_version,
        "instruction_sha256": campaign.instruction_sha256,
        "soft_s": campaign.spec.soft_s,
        "due_at": campaign.due_at,
        "left": None,
        "tags": _TAGS,
        "scales": _SCALES,
    }


def _work(shown: Shown, elapsed_s: float) -> Work:
    panes = {side.alias: _pane(side) for side in shown.sides}
    inputs = panes.pop("inputs")
    if shown.campaign.form is Form.PAIRWISE:
        order = [p for alias in ("a", "b", "reference") if (p := panes.get(alias))]
    else:
        order = [panes["reference"], panes["deliverable"]]
    a = shown.assignment
    return Work(a.id, shown.brief, shown.note, inputs, order, round(elapsed_s, 1), round(a.active_s, 1))


def _pane(side: Side) -> Pane:
    files = [_listed(f) for f in side.files]
    problems = f"{side.not_listed} further files are not listed here." if side.not_listed else ""
    nothing = "There is no reference for this task." if side.alias == "reference" else "No files."
    return Pane(side.alias, _TITLES[side.alias], files, side.alias in ("deliverable", "a"), nothing, problems)


def _listed(f: ShownFile) -> Listed:
    folder, _, name = f.name.rpartition("/")
    words = [p.type.value for p in f.report.problems if p.type not in NOT_THE_FILES] if f.report else []
    if f.evidence is not None and f.evidence.state == "failed" and not words:
        words = [f.evidence.error or "cannot_open"]
    return Listed(f.n, folder, name, f.size_bytes, words, _order(f))


def _order(f: ShownFile) -> int:
    if rating_files.extension(f.path) in rating_files.RUNS:
        return 0 if f.path.endswith("index.html") else 1
    if rating_files.media(f) or rating_files.is_text(f) or (f.evidence is not None and f.evidence.state == "extracted"):
        return 2
    return 3


def _file(request: Request, shown: Shown, side: Side, file: ShownFile) -> dict[str, Any]:
    """Return what the page of a file has. Reads the beginning of a text."""
    root = f"/v1/rate/{quote(shown.assignment.id)}"
    said, media = file.evidence, rating_files.media(file)
    pictures = rating_files.pictures(shown, file, root)
    parts = rating_files.of_evidence(said) if said is not None else []
    if said is None and rating_files.is_text(file):
        with rating_of(request).blobs.open(file.sha256) as stream:
            parts = rating_files.of_text(file.path, stream.read(rating_files.MOST_BYTES), file.size_bytes)
    runs = rating_files.extension(file.path) in rating_files.RUNS
    seen = bool(parts or pictures or media or runs)
    return {
        "f": {"path": file.name, "size_bytes": file.size_bytes, "mime": file.mime, "sha256": file.sha256,
              "href": f"{root}/files/{file.n}"},
        "problems": [(p.type, shown.names.scrubbed(p.detail)) for p in (file.report.problems if file.report else ())],
        "notes": _notes(shown, side, said, seen=seen),
        "run_url": f"{root}/files/{file.n}/preview" if runs else None,
        "media": media,
        "pictures": pictures,
        "parts": parts,
        "named": rating_files.NAMED,
        "omitted": rating_files.left_out(said.omitted) if said is not None else "",
        "nothing": "" if seen else "There is no preview of this file: download it, and check its hash if in doubt.",
    }  # fmt: skip


def _notes(shown: Shown, side: Side, said: EvidenceFile | None, *, seen: bool) -> list[str]:
    """Return what is to be said of the preview itself. Details may quote a file's name, which may tell too much."""
    if said is None:
        waiting = not seen and side.alias in ("deliverable", "a", "b") and side.evidence == EvidenceState.PENDING
        return (
            ["Previews of office files and PDFs are being made: choose the file again in a minute."] if waiting else []
        )
    failed = [f"It could not be read: {said.error or ''} {said.detail or ''}".strip()] if said.state == "failed" else []
    return [shown.names.scrubbed(line) for line in (*failed, *said.notes)]
