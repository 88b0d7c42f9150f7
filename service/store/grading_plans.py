"""Grading plans: versions of named choices of methods. A version never changes once it is stored."""

import re

from sqlalchemy import func, select

from service.domain.cleaning import clean_json
from service.domain.errors import Invalid, NotFound
from service.domain.grading_plans import TASK_PLAN, PlanSpec
from service.domain.ids import new_id
from service.domain.tasks import canonical_digest
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_grading import PlanRow
from service.store.tables_grading import grading_plans

BUILT_IN = "task"
"""Name of the plan that every project has: the task's own graders."""
LISTING = Listing(
    grading_plans,
    PlanRow.of,
    sorts_by(created_at=Sort(grading_plans.c.created_at), name=Sort(grading_plans.c.name, str)),
    {"name": one_of(grading_plans.c.name), "author": one_of(grading_plans.c.author)},
)
_REFERENCE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._/-]{0,127})(?:@([1-9][0-9]{0,8}))?", re.ASCII)


async def put(tx: Tx, project_id: str, name: str, spec: PlanSpec, author: str) -> tuple[PlanRow, bool]:
    """Store the plan's next version and return it; the newest one, and False, where that says the same already.

    Raises Invalid ``plan_built_in``.
    """
    if name == BUILT_IN:
        raise Invalid("plan_built_in", f"{name!r} is the plan of the tasks' own graders; take another name")
    # Versions of one name are counted one after the other.
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"plan {project_id} {name}", 0))))
    said, newest = clean_json(spec.model_dump(mode="json")), await find(tx, project_id, name)
    digest = canonical_digest(said)
    if newest is not None and newest.digest == digest:
        return newest, False
    values = {
        "id": new_id("gpl"),
        "project_id": project_id,
        "name": name,
        "version": 1 if newest is None else newest.version + 1,
        "digest": digest,
        "spec": said,
        "author": author,
    }
    query = grading_plans.insert().values(values).returning(grading_plans)
    return PlanRow.of((await tx.execute(query)).mappings().one()), True


async def find(tx: Tx, project_id: str, reference: str) -> PlanRow | None:
    """Return the project's plan ``name@version``, or the newest version of ``name``; null if there is none."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    c = grading_plans.c
    query = select(grading_plans).where(c.project_id == project_id, c.name == match[1])
    if match[2] is not None:
        query = query.where(c.version == int(match[2]))
    row = (await tx.execute(query.order_by(c.version.desc()).limit(1))).mappings().one_or_none()
    return None if row is None else PlanRow.of(row)


async def resolve(tx: Tx, project_id: str, reference: str) -> tuple[str, PlanSpec]:
    """Return ``name@version`` and what it says; ``task`` and ``task@1`` are the built-in one.

    Raises NotFound ``plan_not_found``.
    """
    if reference in (BUILT_IN, TASK_PLAN):
        return TASK_PLAN, PlanSpec()
    row = await find(tx, project_id, reference)
    if row is None:
        raise NotFound("plan_not_found", f"no grading plan {reference}")
    return f"{row.name}@{row.version}", row.spec


async def spec_of(tx: Tx, project_id: str, plan: str) -> PlanSpec:
    """Return what the plan of a run or a grading says. Raises NotFound ``plan_not_found``."""
    return (await resolve(tx, project_id, plan))[1]
