"""``POST /v1/rate/{assignment}/files/{n}/preview``: where the rater's browser may open a document of the item in hand.

For our own pages, and so not in the schema.
"""

from dataclasses import replace

from fastapi import APIRouter
from starlette.responses import Response

from service.api.auth import State
from service.api.json_body import StrictRoute
from service.api.previews import ROOT
from service.api.rating_auth import Rater
from service.api.rendering import Timestamp, View, answer
from service.domain.errors import NotFound
from service.lifecycle.campaigns import rating
from service.lifecycle.campaigns.showing import Shown, ShownFile, show
from service.store import previews
from service.store.previews import Tree

router = APIRouter(include_in_schema=False, route_class=StrictRoute)


class Preview(View):
    url: str
    """For a frame with ``sandbox="allow-scripts"``; whoever has it may read the files beside the document."""
    expires_at: Timestamp


@router.post("/v1/rate/{assignment_id}/files/{n}/preview")
async def preview_file(assignment_id: str, n: int, who: Rater, state: State) -> Response:
    """Grant a look at one file and what lies beside it, for two hours. 404 unless the item is in hand."""
    async with state.db.transaction() as tx:
        hand = await rating.in_hand(tx, who, assignment_id)
        if hand.assignment.state != "leased":
            raise NotFound("not_found")
        shown = await show(tx, state.blobs, hand.campaign, hand.rater, hand.assignment)
        file = next((f for f in shown.files if f.n == n), None)
        if file is None:
            raise NotFound("not_found")
        tree = replace(_tree(shown, file), entry=file.path)
        capability, until = await previews.grant(tx, state.secrets, tree)
    url = f"{state.config.preview_origin or ''}{ROOT}{capability}/{previews.address(tree)}"
    return answer(Preview(url=url, expires_at=until), headers={"Cache-Control": "private, no-store"})


def _tree(shown: Shown, file: ShownFile) -> Tree:
    side = next(s for s in shown.sides if any(f.n == file.n for f in s.files))
    return side.tree or Tree(shown.campaign.project_id, "inputs", shown.item.task_id)
