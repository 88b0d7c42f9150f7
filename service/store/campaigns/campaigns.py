"""Campaigns: one row each, which every change of its items, raters and ratings touches under its lock."""

import hashlib
from typing import Any

from sqlalchemy import BigInteger, cast, func, select

from service.domain.campaigns import CampaignSpec, CampaignState
from service.domain.errors import Conflict
from service.domain.ids import new_id
from service.store import blob_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_campaigns import CampaignRow
from service.store.tables_campaigns import campaigns

OWNER = "campaign"
"""Owner of the blobs of its instructions: its id is the campaign's."""
LISTING = Listing(
    campaigns,
    CampaignRow.of,
    sorts_by(created_at=Sort(campaigns.c.created_at)),
    {"state": one_of(campaigns.c.state), "form": one_of(campaigns.c.form), "name": one_of(campaigns.c.name)},
    version=cast(campaigns.c.revision, BigInteger),
    labels=campaigns.c.labels,
)


async def create(tx: Tx, project_id: str, spec: CampaignSpec, items: int, short: list[Any], author: str) -> CampaignRow:
    """Insert a draft. The instruction's bytes must be stored already."""
    text = spec.instruction.encode()
    values = {
        "id": new_id("cmp"),
        "project_id": project_id,
        "name": spec.name,
        "form": spec.form,
        "spec": spec.model_dump(mode="json"),
        "instruction": spec.instruction,
        "instruction_sha256": hashlib.sha256(text).hexdigest(),
        "labels": spec.labels,
        "items": items,
        "short": short,
        "author": author,
        "due_at": spec.due_at,
    }
    row = (await tx.execute(campaigns.insert().values(values).returning(campaigns))).mappings().one()
    made = CampaignRow.of(row)
    await blob_refs.add_refs(tx, project_id, OWNER, made.id, [(made.instruction_sha256, len(text))])
    return made


async def get(tx: Tx, project_id: str, campaign_id: str, *, lock: bool = False) -> CampaignRow | None:
    """Return the project's campaign; null if there is none. With ``lock`` nothing of it changes before the end."""
    query = select(campaigns).where(campaigns.c.id == campaign_id, campaigns.c.project_id == project_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    return None if row is None else CampaignRow.of(row)


async def touch(tx: Tx, campaign_id: str, **columns: Any) -> CampaignRow:
    """Write columns; raises the revision and tells the feed. The caller holds the lock."""
    values = {**columns, "updated_at": func.clock_timestamp()}
    query = campaigns.update().where(campaigns.c.id == campaign_id).values(values).returning(campaigns)
    return CampaignRow.of((await tx.execute(query)).mappings().one())


async def instruct(tx: Tx, campaign: CampaignRow, instruction: str) -> CampaignRow:
    """Give it another instruction, whose bytes are stored already; the same one again is no new version."""
    if instruction == campaign.instruction:
        return campaign
    text = instruction.encode()
    digest = hashlib.sha256(text).hexdigest()
    await blob_refs.add_refs(tx, campaign.project_id, OWNER, campaign.id, [(digest, len(text))])
    version = campaign.instruction_version + 1
    return await touch(tx, campaign.id, instruction=instruction, instruction_version=version, instruction_sha256=digest)


async def open_(tx: Tx, campaign: CampaignRow) -> CampaignRow:
    """Let raters in; open already: nothing changes. Raises Conflict("campaign_closed")."""
    if campaign.state is CampaignState.CLOSED:
        raise Conflict("campaign_closed", "the campaign is closed")
    if campaign.state is CampaignState.OPEN:
        return campaign
    return await touch(tx, campaign.id, state=CampaignState.OPEN, opened_at=func.clock_timestamp())


async def close(tx: Tx, campaign: CampaignRow) -> CampaignRow:
    if campaign.state is CampaignState.CLOSED:
        return campaign
    return await touch(tx, campaign.id, state=CampaignState.CLOSED, closed_at=func.clock_timestamp())


def check_open(campaign: CampaignRow) -> None:
    """Raises Conflict("campaign_not_open")."""
    if campaign.state is not CampaignState.OPEN:
        raise Conflict("campaign_not_open", f"the campaign is {campaign.state}", state=campaign.state)
