"""Errors of ours, in the shape that the client's program reads."""

from service.gateway.auth import Refused
from service.gateway.dialects import registry
from service.gateway.dialects.contract import DialectRules, Route
from service.gateway.exchange import Exchange


async def refuse(exchange: Exchange, rules: DialectRules, route: Route | None, refused: Refused) -> None:
    """Answer with the error, unless an answer is under way: then that one is broken off."""
    if exchange.started:
        return
    headers, body = rules.refusal(route, refused.status, refused.type, str(refused))
    await exchange.answer(refused.status, headers, body)


async def refuse_unknown(exchange: Exchange, refused: Refused) -> None:
    """The same where nobody knows yet which dialect is spoken."""
    rules = registry.rules_of(registry.likely_dialect(exchange.shown_path))
    await refuse(exchange, rules, None, refused)
