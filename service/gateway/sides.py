"""The sides of the gateway that are not planted in a sandbox: our own processes on a Unix socket, drivers on a port."""

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from service.domain.grants import GrantedModel
from service.gateway.auth import Refused, presented
from service.gateway.caller import Caller, own_caller
from service.gateway.cassettes.replay import Playing
from service.gateway.endpoints import Endpoints
from service.gateway.exchange import Exchange
from service.gateway.ports import Purpose

PROJECT, PURPOSE, MODEL, RUN, SUBJECT, REPLAY = (
    "x-workstead-project",
    "x-workstead-purpose",
    "x-workstead-model",
    "x-workstead-run",
    "x-workstead-subject",
    "x-workstead-replay",
)
"""Headers beside the service token: project id, purpose, names of catalogue models (separated by commas),
``<run id>/<attempt>`` where the request belongs to a run, what else it is for (a grading's id), and the grading whose
judges' recorded answers it gets."""
MAX_MODELS, MAX_SUBJECT = 16, 64
MOST_PLAYING = 1_000
"""Gradings whose recordings are kept open; of one that is asked for again later, all answers are there again."""
FindModels = Callable[[str, list[str]], Awaitable[list[GrantedModel]]]
"""Project id, names → the project's models of these names. Raises Unavailable."""


class OwnSide:
    """The Unix socket: the service token with headers that say for whom, or a run's own token (our loops).

    Side models do not hold runs: their requests wait for a shut breaker as long as the run's patience (of no run: ours).
    A simulated client's failure is then the attempt's, as one of the agent's own model is: ``provider_unavailable``;
    in a replay its answers come from the recording as the agent's do.
    """

    def __init__(self, endpoints: Endpoints, token: str, find: FindModels, patience_s: float) -> None:
        self._endpoints = endpoints
        self._token = token.encode()
        self._find = find
        self._patience_s = patience_s
        self._playing: OrderedDict[tuple[str, str], Playing] = OrderedDict()

    async def admit(self, exchange: Exchange) -> Caller:
        """Raises Refused, Unavailable."""
        token = presented(exchange.headers, exchange.query())
        if not hmac.compare_digest(token.encode(errors="replace"), self._token):
            return self._endpoints.by_token(token, public=False)
        project = exchange.header(PROJECT)
        try:
            purpose = Purpose(exchange.header(PURPOSE) or "")
        except ValueError:
            raise Refused(400, "bad_purpose", f"{PURPOSE}: one of {', '.join(Purpose)}") from None
        names = [name.strip() for name in (exchange.header(MODEL) or "").split(",") if name.strip()]
        if not project or not names or len(names) > MAX_MODELS:
            raise Refused(400, "bad_headers", f"{PROJECT} and {MODEL} are needed")
        models = await self._find(project, names)
        run_id, attempt = _run(exchange.header(RUN))
        caller = own_caller(project, purpose, models, self._patience_s, run_id, attempt)
        caller.subject = _subject(exchange.header(SUBJECT))
        self._replay(caller, _subject(exchange.header(REPLAY)))
        if purpose is Purpose.CLIENT and run_id is not None and attempt is not None:
            served = self._endpoints.caller((run_id, attempt), project)
            if served is None:
                # Nobody knows here whether it is a replay, which must reach no provider; the worker says so soon.
                raise Refused(503, "run_not_served", "the gateway does not serve this attempt, or not yet")
            caller.belong_to(served)
        return caller

    def _replay(self, caller: Caller, recorded: str | None) -> None:
        """Let a judge be answered from the recording of a grading. Raises Refused."""
        if recorded is None:
            return
        if caller.purpose is not Purpose.JUDGE or caller.subject is None:
            raise Refused(400, "bad_headers", f"{REPLAY}: of judges alone, with {SUBJECT}")
        key = (caller.project_id, caller.subject)
        caller.replay_of, caller.playing = recorded, self._playing.setdefault(key, Playing())
        self._playing.move_to_end(key)
        while len(self._playing) > MOST_PLAYING:
            self._playing.popitem(last=False)


class PublicSide:
    """The TCP port: run tokens of attempts that are driven from outside."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    async def admit(self, exchange: Exchange) -> Caller:
        """Raises Refused (401)."""
        return self._endpoints.by_token(presented(exchange.headers, exchange.query()), public=True)


def _subject(value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.isprintable() and 0 < len(value) <= MAX_SUBJECT):
        raise Refused(400, "bad_headers", f"{SUBJECT}: an id")
    return value


def _run(value: str | None) -> tuple[str | None, int | None]:
    if value is None:
        return None, None
    run_id, _, attempt = value.partition("/")
    if not run_id or not attempt.isascii() or not attempt.isdigit() or len(attempt) > 9:
        raise Refused(400, "bad_headers", f"{RUN}: <run id>/<attempt>")
    return run_id, int(attempt)
