"""Two campaigns over an evaluation's work: people against the reference, and between agents. Each rater has a token of its own."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from demo.benchmarks.works.raters import pair_rating, panel_rating, worth
from workstead.aio import AsyncClient
from workstead.models_campaigns import Campaign, RatedItem

RATERS = ("Ada", "Ben", "Cleo")
LENIENT = "Ben"
INSTRUCTION = "Read the brief and the reference first. Accept what a reasonable client would pay for."


async def rate(client: AsyncClient, url: str, evaluation: str, agents: Sequence[str], name: str) -> dict[str, int]:
    """Have all work rated, and all pairs of agents compared; return ratings by form. Raises WorksteadError."""
    where: Mapping[str, Any] = {"where": {"evaluation_id": [evaluation]}}
    common = {"instruction": INSTRUCTION, "selection": where, "seed": 7}
    forms = {"human_panel": {}, "pairwise": {"pairs": {"agents": [*agents], "human": False}}}
    done: dict[str, int] = {}
    for form, more in forms.items():
        campaign = await client.campaigns.create({"name": f"{name}/{form}", "form": form, **common, **more})
        done[form] = await _rated(client, url, campaign)
    return done


async def _rated(client: AsyncClient, url: str, campaign: Campaign) -> int:
    async with AsyncExitStack() as stack:
        tokens = [await client.tokens.create(["rate"], note=name) for name in RATERS]
        people = [{"name": name, "token_id": token.id} for name, token in zip(RATERS, tokens, strict=True)]
        await client.campaigns.add_raters(campaign.id, people)
        await client.campaigns.open(campaign.id)
        hands = [await stack.enter_async_context(AsyncClient(url, str(token.secret))) for token in tokens]
        count = 0
        # In turns, until nobody gets anything: what two do not agree on waits for a third.
        while given := sum([await _one(hand, campaign, name) for hand, name in zip(hands, RATERS, strict=True)]):
            count += given
    await client.campaigns.close(campaign.id)
    for token in tokens:
        await client.tokens.revoke(token.id)
    return count


async def _one(hand: AsyncClient, campaign: Campaign, name: str) -> bool:
    item, began = await hand.rating.next(campaign.id), time.monotonic()
    if item is None:
        return False
    seen = {side["alias"]: worth(item.brief, await _files(hand, item, side)) for side in item.sides}
    if campaign.form == "pairwise":
        said = pair_rating(seen["a"], seen["b"])
    else:
        said = panel_rating(seen["deliverable"], lenient=name == LENIENT)
    await hand.rating.submit(item.id, said, client_id=f"demo-{item.id}", active_s=time.monotonic() - began)
    return True


async def _files(hand: AsyncClient, item: RatedItem, side: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what can be opened of a side."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="workstead-rated-") as folder:
        for file in (one for one in side["files"] if one["opens"] is not False):
            target = Path(folder) / str(file["n"])
            await hand.rating.file(item.id, file["n"], target)
            found[file["name"]] = target.read_bytes()
    return found
