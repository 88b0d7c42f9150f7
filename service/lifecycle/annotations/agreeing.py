"""How far the votes of a set agree."""

import asyncio
from collections.abc import Mapping

from service.domain.annotation_votes import Agreement, settle, table
from service.reporting.agreement import fleiss_kappa
from service.store import annotations
from service.store.annotations import Said
from service.store.database import Tx
from service.store.rows_annotations import AnnotationSetRow


async def agreement_of(tx: Tx, row: AnnotationSetRow) -> Agreement:
    said = await annotations.said_of(tx, row.id) if row.answered else {}
    return await asyncio.to_thread(_agreement, row, said)


def _agreement(row: AnnotationSetRow, said: Mapping[str, Said]) -> Agreement:
    votes = len(row.spec.annotators) * row.spec.votes
    counts = table({target: one.votes for target, one in said.items()}, votes) if votes else []
    tied = {target: settle(row.spec.answer, one.votes, one.person).tied for target, one in said.items()}
    return Agreement(
        items=len(counts),
        votes=votes,
        kappa=fleiss_kappa(counts),
        unanimous=sum(max(values) == votes for values in counts),
        tied={target: values for target, values in tied.items() if values},
    )
