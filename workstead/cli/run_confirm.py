"""``workstead runs confirm``: a person's word on what a provider will not have done unasked."""

import asyncio
from typing import Annotated, Literal

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import RunId, fail, in_words, line
from workstead.models import Confirmation

Deny = Annotated[bool, typer.Option("--deny", help="Refuse: the run ends, and what it delivered is graded")]
Which = Annotated[str | None, typer.Argument(help="cnf_…; the only pending one where it is left out")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")]


@in_words
def confirm(run_id: RunId, confirmation_id: Which = None, deny: Deny = False, yes: Yes = False) -> None:
    """Show what a run waits for, and acknowledge or deny it. Needs a token with runs:write."""

    async def work() -> None:
        async with AsyncClient() as client:
            found = [one async for one in client.runs.confirmations(run_id)]
            chosen = _chosen(found, confirmation_id)
            for check in chosen.checks:
                line(f"{check.code}: {check.message}")
            if chosen.intent:
                line(f"The agent: {chosen.intent}")
            decision: Literal["acknowledge", "deny"] = "deny" if deny else "acknowledge"
            if not yes:
                typer.confirm(f"{decision} {chosen.id}?", abort=True, err=True)
            line(f"{chosen.id}: {(await client.runs.confirm(run_id, chosen.id, decision)).state}")

    asyncio.run(work())


def _chosen(found: list[Confirmation], wanted: str | None) -> Confirmation:
    fit = [one for one in found if (one.state == "pending" if wanted is None else one.id == wanted)]
    if len(fit) != 1:
        raise fail("nothing waits for a confirmation" if not fit else "several are pending: name one")
    return fit[0]
