"""Annotation sets, votes and values as the API shows them."""

from collections.abc import Mapping
from typing import Any

from service.api.rendering import Digest, Timestamp, View, sha256_name
from service.domain.annotation_votes import Agreement
from service.domain.annotations import AnnotationState, Target
from service.domain.models import TokenUsage
from service.domain.surveys import SurveyState
from service.lifecycle.estimates import money
from service.store.rows_annotations import AnnotationRow, AnnotationSetRow, AnnotationValueRow
from service.store.rows_requests import SubjectCost

Value = str | float | list[str] | None


class AnnotationSetHead(View):
    id: str
    revision: int
    name: str
    version: int
    overlay: str
    """``name@version``: what its values are called as a facet, once it is accepted."""
    about: Target
    state: SurveyState
    benchmark_id: str | None
    template: str
    template_digest: Digest
    total: int
    """Votes to be asked for."""
    answered: int
    """People's included."""
    refused: int
    unreadable: int
    """No answer fitted."""
    excluded: int
    """There was nothing to show."""
    failed: int
    """Could not be asked."""
    brought: int
    """By people."""
    operation_id: str | None
    """Of the latest start."""
    stopped_because: str | None
    """annotator_away, or what was unavailable."""
    digest: Digest | None
    """Of the values that were accepted."""
    accepted_at: Timestamp | None
    accepted_by: str | None
    labels: dict[str, str]
    author: str
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None


class AnnotationAgreement(View):
    """How far the votes of models agree. People's words are in none of it."""

    items: int
    """That all votes were answered on: κ is of these."""
    votes: int
    """Of each of them."""
    kappa: float | None
    """Fleiss; null: fewer than two votes, no such item, or one value throughout."""
    unanimous: int
    """Items of these with one value in all votes."""
    tied: dict[str, list[str]]
    """Target → values with as many votes as each other, at most 100 of them; these have no value."""
    ties: int


class AnnotationSet(AnnotationSetHead):
    spec: dict[str, Any]
    """What was asked for; texts are not among it."""
    estimate: dict[str, Any]
    """Made before anybody was asked: targets, votes, input_tokens, output_tokens, cost_usd (null: a price is not known), parts."""
    targets: int
    valued: int
    """Targets with a value."""
    agreement: AnnotationAgreement
    usage: TokenUsage
    """Of all questions so far."""
    cost_usd: str | None
    """Null: not known, or nothing was asked."""


class AnnotationView(View):
    """One vote."""

    id: str
    set_id: str
    target: str
    """Task id, run id, or id of the text."""
    annotator: str
    """``model#digest of its settings``; ``person``."""
    n: int
    """Vote, from 1."""
    state: AnnotationState
    value: Value
    reason: str | None
    model: str | None
    reported_model: str | None
    """As the provider calls it."""
    author: str | None
    """Of a person's."""
    asks: int
    cause: str | None
    """Why it is not answered."""
    rendered_digest: Digest | None
    """Of JSON {system, text}, a blob."""
    usage: dict[str, Any] | None
    cost_usd: str | None
    created_at: Timestamp


class AnnotationValue(View):
    """What a set says of one target."""

    target: str
    task_id: str | None
    item_key: str | None
    value: Value
    """Null: nothing was answered, or a tie."""
    votes: int
    agreeing: int
    """Of these, votes for the value."""
    tied: list[str]
    by_person: bool
    """A person's word, which goes before the votes."""


class BroughtAnnotations(View):
    new: int
    known: int
    """The same value and reason as the person's last one."""


def head_view(row: AnnotationSetRow) -> AnnotationSetHead:
    return AnnotationSetHead(**_head(row))


def set_view(
    row: AnnotationSetRow, targets: int, valued: int, agreement: Agreement, cost: SubjectCost | None
) -> AnnotationSet:
    known = cost is not None and cost.usd is not None and not cost.unknown
    return AnnotationSet(
        **_head(row),
        spec=row.spec.model_dump(mode="json"),
        estimate=row.estimate,
        targets=targets,
        valued=valued,
        agreement=AnnotationAgreement(
            items=agreement.items, votes=agreement.votes, kappa=agreement.kappa, unanimous=agreement.unanimous,
            tied=_first(agreement.tied), ties=len(agreement.tied),
        ),
        usage=TokenUsage() if cost is None else cost.usage,
        cost_usd=money(cost.usd) if known and cost is not None and cost.usd is not None else None,
    )  # fmt: skip


def annotation_view(row: AnnotationRow) -> AnnotationView:
    names = set(AnnotationView.model_fields) - {"rendered_digest", "cost_usd"}
    return AnnotationView(
        **{name: getattr(row, name) for name in names},
        rendered_digest=None if row.rendered_sha256 is None else sha256_name(row.rendered_sha256),
        cost_usd=None if row.cost_usd is None else money(row.cost_usd),
    )


def value_view(row: AnnotationValueRow) -> AnnotationValue:
    return AnnotationValue(**{name: getattr(row, name) for name in AnnotationValue.model_fields})


def _first(tied: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return dict(list(tied.items())[:100])


def _head(row: AnnotationSetRow) -> dict[str, Any]:
    names = set(AnnotationSetHead.model_fields) - {"template_digest", "digest"}
    return {name: getattr(row, name) for name in names} | {
        "template_digest": sha256_name(row.template_sha256),
        "digest": None if row.digest is None else sha256_name(row.digest),
    }
