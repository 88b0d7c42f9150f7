"""What a rater is told of an assignment: nothing here says whose work it is."""

from collections.abc import Callable
from typing import Any

from service.api.rendering import Digest, Timestamp, View, sha256_name
from service.domain.campaigns import Form
from service.domain.ratings import PairOpinion
from service.lifecycle.campaigns.showing import Shown, ShownFile, ShownImage, Side
from service.store.rows_campaigns import AssignmentRow


class RatedFile(View):
    n: int
    name: str
    """Path, without names of agents, models, providers and scaffolds."""
    size_bytes: int
    sha256: Digest
    mime: str | None
    opens: bool | None
    """Whether it opens as what it claims; null where nobody looked."""
    problems: list[str]
    """empty | truncated | type_mismatch | …"""
    href: str


class RatedImage(View):
    n: int
    file: int
    """Number of the file that it is of."""
    label: str
    """Where in the file: ``page 3``."""
    source: str
    """file | page | embedded | output | frame"""
    media_type: str
    width: int
    height: int
    href: str


class RatedSide(View):
    alias: str
    """inputs | reference | deliverable | a | b"""
    files: list[RatedFile]
    evidence: str | None
    """pending | ready | unavailable: pictures of pages and tables; null where there are none to be."""
    not_listed: int


class Assignment(View):
    """One item in a rater's hands."""

    id: str
    state: str
    """leased | submitted | skipped | released"""
    form: str
    """human_panel | pairwise"""
    instruction_version: int
    brief: str
    """Markdown of unknown origin."""
    note: str | None
    """What the task's author tells raters."""
    sides: list[RatedSide]
    images: list[RatedImage]
    soft_limit_s: float
    leased_until: Timestamp | None
    active_s: float
    wall_s: float
    rating: dict[str, Any] | None
    """What this rater submitted."""


class Kept(View):
    id: str
    state: str
    leased_until: Timestamp | None
    active_s: float
    wall_s: float
    submitted_at: Timestamp | None


class TrialProgress(View):
    needed: int
    done: int
    passed: bool | None


class RatingSession(View):
    """Who rates, and what."""

    campaign: str
    """Its name."""
    form: str
    state: str
    """draft | open | closed"""
    pseudonym: str
    instruction: str
    instruction_version: int
    soft_limit_s: float
    due_at: Timestamp | None
    in_hand: str | None
    """Assignment."""
    submitted: int
    skipped: int
    trial: TrialProgress | None
    """Items with known answers that come first."""


def kept_view(a: AssignmentRow) -> Kept:
    return Kept(**{name: getattr(a, name) for name in Kept.model_fields})


def assignment_view(shown: Shown) -> Assignment:
    a, campaign, scrub = shown.assignment, shown.campaign, shown.names.scrubbed
    return Assignment(
        id=a.id,
        state=a.state,
        form=campaign.form,
        instruction_version=campaign.instruction_version,
        brief=shown.brief,
        note=shown.note,
        sides=[_side(a.id, side) for side in shown.sides],
        images=[_image(a.id, image, scrub) for image in shown.images],
        soft_limit_s=campaign.spec.soft_s,
        leased_until=a.leased_until,
        active_s=a.active_s,
        wall_s=a.wall_s,
        rating=_given(campaign.form, a),
    )


def _given(form: Form, a: AssignmentRow) -> dict[str, Any] | None:
    if a.rating is None or form is Form.HUMAN_PANEL:
        return a.rating
    return PairOpinion.model_validate(a.rating).seen(swapped=a.swapped).model_dump(mode="json")


def _side(assignment_id: str, side: Side) -> RatedSide:
    files = [_file(assignment_id, file) for file in side.files]
    return RatedSide(alias=side.alias, files=files, evidence=side.evidence, not_listed=side.not_listed)


def _file(assignment_id: str, file: ShownFile) -> RatedFile:
    return RatedFile(
        n=file.n,
        name=file.name,
        size_bytes=file.size_bytes,
        sha256=sha256_name(file.sha256),
        mime=file.mime,
        opens=file.report.opens if file.report else None,
        problems=[p.type for p in file.report.problems] if file.report else [],
        href=f"/v1/rate/{assignment_id}/files/{file.n}",
    )


def _image(assignment_id: str, image: ShownImage, scrub: Callable[[str], str]) -> RatedImage:
    names = ("source", "media_type", "width", "height")
    return RatedImage(
        n=image.n,
        file=image.file,
        label=scrub(image.image.label),
        href=f"/v1/rate/{assignment_id}/images/{image.n}",
        **{name: getattr(image.image, name) for name in names},
    )
