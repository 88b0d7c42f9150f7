"""What a run may still spend. Pure but for the waiting; nothing here is awaited while it changes.

A request reserves what it could cost before it is forwarded, so that parallel ones cannot overshoot together. One that
fits but for what others have reserved waits for them: they rarely take all of it.
"""

import asyncio
from dataclasses import dataclass
from decimal import Decimal

from service.domain.policies import RunBudget
from service.store.rows_requests import Spent


class BudgetExhausted(Exception):
    """``str()`` says which limit, what is spent and what the request could take."""


@dataclass(frozen=True, slots=True)
class Reservation:
    tokens: int
    usd: Decimal


class Budget:
    def __init__(self, rules: RunBudget, spent: Spent | None = None) -> None:
        self.rules = rules
        self.spent = spent or Spent()
        self._reserved_tokens = 0
        self._reserved_usd = Decimal(0)
        self._freed = asyncio.Event()

    async def reserve(self, tokens: int, usd: Decimal | None) -> Reservation:
        """Count one request, and reserve. Null dollars (price unknown) reserve none. Raises BudgetExhausted."""
        wanted = Reservation(tokens, usd or Decimal(0))
        await self._room(wanted, requests=1)
        self.spent = Spent(self.spent.requests + 1, self.spent.tokens, self.spent.usd)
        self._reserved_tokens += wanted.tokens
        self._reserved_usd += wanted.usd
        return wanted

    async def take(self, usd: Decimal) -> None:
        """Count dollars that are spent by no request to a model. Raises BudgetExhausted."""
        await self._room(Reservation(0, usd), requests=0)
        self.spent = Spent(self.spent.requests, self.spent.tokens, self.spent.usd + usd)

    def give_back(self, usd: Decimal) -> None:
        """Undo :meth:`take` of what never left."""
        self.spent = Spent(self.spent.requests, self.spent.tokens, self.spent.usd - usd)
        self._freed.set()

    def settle(self, reserved: Reservation, tokens: int | None, usd: Decimal | None) -> None:
        """Replace the reservation by what was taken; null tokens (not known): by itself."""
        if tokens is None:
            tokens, usd = reserved.tokens, reserved.usd
        self._release(reserved)
        self.spent = Spent(self.spent.requests, self.spent.tokens + tokens, self.spent.usd + (usd or Decimal(0)))

    def forget(self, reserved: Reservation) -> None:
        """Undo the reservation of a request that was never forwarded."""
        self._release(reserved)
        self.spent = Spent(self.spent.requests - 1, self.spent.tokens, self.spent.usd)

    def _release(self, reserved: Reservation) -> None:
        self._reserved_tokens -= reserved.tokens
        self._reserved_usd -= reserved.usd
        self._freed.set()

    async def _room(self, wanted: Reservation, requests: int) -> None:
        """Return at once when it fits, or when what is reserved has become less. Raises BudgetExhausted."""
        while True:
            if why := self._missing(wanted, requests, 0, Decimal(0)):
                raise BudgetExhausted(why)
            if not self._missing(wanted, requests, self._reserved_tokens, self._reserved_usd):
                return
            self._freed.clear()
            await self._freed.wait()

    def _missing(self, wanted: Reservation, requests: int, reserved_tokens: int, reserved_usd: Decimal) -> str:
        rules, spent = self.rules, self.spent
        if requests and rules.max_requests is not None and spent.requests + requests > rules.max_requests:
            return f"all {rules.max_requests} requests of this run's budget are made"
        tokens = spent.tokens + reserved_tokens
        if rules.max_tokens is not None and wanted.tokens and tokens + wanted.tokens > rules.max_tokens:
            return f"{spent.tokens} of {rules.max_tokens} tokens are spent, and this request may take {wanted.tokens}"
        limit = None if rules.max_usd is None else Decimal(rules.max_usd)
        if limit is not None and wanted.usd and spent.usd + reserved_usd + wanted.usd > limit:
            shown = [f"{usd.normalize():f}" for usd in (spent.usd, limit, wanted.usd)]
            return f"{shown[0]} of {shown[1]} dollars are spent, and this request may take {shown[2]}"
        return ""
