"""Who rates: a person by the cookie that an invitation became, or a program by a token with the scope ``rate``.

A rater's session is no token: it opens ``/v1/rate`` and the rater's pages, and there its own items only.
"""

from typing import Annotated

from fastapi import Depends, Request

from service.api.auth import bearer, check_origin, current_caller, identify
from service.api.charging import charge
from service.api.cookies import rater_secret
from service.api.state import api_state
from service.domain.errors import Invalid, Unauthenticated
from service.lifecycle.campaigns.rating import Who
from service.store.campaigns import raters
from service.store.rows_campaigns import RaterRow

RATE = "rate"


async def identify_rater(request: Request) -> Who:
    """Return who rates. Raises Unauthenticated, Forbidden (a token without the scope, a foreign origin)."""
    if bearer(request) is not None:
        caller = await current_caller(await identify(request))
        caller.require(RATE)
        return Who(caller.project_id, token_id=caller.token.id)
    row = await session_rater(request)
    return Who(row.project_id, rater_id=row.id, campaign_id=row.campaign_id)


async def session_rater(request: Request) -> RaterRow:
    """Return the person whose cookie came. Raises Unauthenticated, Forbidden. For pages, too."""
    state = api_state(request)
    check_origin(request, state)
    secret = rater_secret(request)
    if secret is None:
        raise Unauthenticated("credentials_missing", "open the link of your invitation")
    async with state.db.statement() as tx:
        row = await raters.of_session(tx, secret)
    if row is None:
        raise Unauthenticated("bad_credentials", "the session has ended: ask for another invitation")
    request.state.project_id = row.project_id
    charge(request, state, row.id)
    return row


def campaign_of(who: Who, campaign_id: str | None) -> str:
    """Return the campaign that is meant: a person has one, a program names it. Raises Invalid."""
    found = who.campaign_id or campaign_id
    if found is None:
        raise Invalid("campaign_missing", "a token may rate in several campaigns: name one")
    return found


Rater = Annotated[Who, Depends(identify_rater)]
