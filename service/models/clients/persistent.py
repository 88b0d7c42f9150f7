"""Asks again when the gateway was away or an answer broke off; the gateway itself asks providers again (no SDK does)."""

import asyncio

from service.models.messages import UNAVAILABLE, Answer, Ask, GatewayAway, ModelClient, ModelRefused

AWAY_TRIES, CUT_TRIES = 8, 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0


class Persistent:
    """A client around ``inner``. A gateway that stays away is raised; answers that break off each time are refused."""

    def __init__(self, inner: ModelClient) -> None:
        self._inner = inner

    async def ask(self, ask: Ask) -> Answer:
        """See :class:`service.models.messages.ModelClient`; ``answer_cut`` is a further type of ModelRefused."""
        away = cut = 0
        pause = FIRST_PAUSE_S
        while True:
            try:
                return await self._inner.ask(ask)
            except GatewayAway as error:
                if error.type == UNAVAILABLE:
                    raise  # the gateway has been patient already
                cut += error.type == "answer_cut"
                away += error.type != "answer_cut"
                if cut >= CUT_TRIES:
                    raise ModelRefused("answer_cut", error.detail, http_status=200) from error
                if away >= AWAY_TRIES:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def close(self) -> None:
        await self._inner.close()
