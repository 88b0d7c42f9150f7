"""A process's way to the judges: through the gateway's own side, one client per model, calls in turns (judge_turns).

Whose fault a call without an answer is: a judge that is away or limits us makes the grading wait, a wrong catalogue entry
or key ends it as failed; neither is ever a verdict.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from service.domain.errors import Invalid
from service.domain.grants import GrantedModel
from service.domain.judging import JudgeSpec
from service.graders.contract import GraderBusy, GraderFault, InvalidVote, Question
from service.lifecycle.judge_turns import Turns
from service.lifecycle.own_side import OwnWay, own_headers, reach_of
from service.models.clients import client_for
from service.models.messages import Answer, Ask, GatewayAway, ModelClient, ModelRefused, Reach, UserTurn
from service.store import run_models
from service.store.database import Database, Tx, retrying

AWAY, WRONG = "judge_unavailable", "judge_misconfigured"
MOST_CLIENTS = 64
"""Clients that are kept though nobody uses them."""
_AGAIN = frozenset({"answer_cut"})
_ENDS = frozenset({"context_too_long", "budget_exhausted", "not_recorded"})
_STOPS = {"length": "too_long", "refusal": "refused", "tool_calls": "schema", "other": "stopped"}
"""Why an answer that did not end by itself is no vote."""
Connect = Callable[[Reach], ModelClient]
_Key = tuple[str, str, bool]


@dataclass(slots=True)
class _Shared:
    client: ModelClient
    users: int = 0


class JudgeCalls:
    """Of one process. :meth:`close` it when nothing is asked any more."""

    def __init__(
        self,
        db: Database,
        way: OwnWay,
        turns: Turns,
        *,
        connect: Connect = client_for,
        database_patience_s: float = 600.0,
    ) -> None:
        self._db, self._way, self._turns, self._connect = db, way, turns, connect
        self._patience_s = database_patience_s
        self._clients: OrderedDict[_Key, _Shared] = OrderedDict()
        self._connecting = asyncio.Lock()

    async def model(self, project_id: str, judge: JudgeSpec) -> GrantedModel:
        """Return the judge's model as the catalogue has it now. Raises GraderFault ``judge_misconfigured``, Unavailable."""
        find = partial(_find, project_id=project_id, name=judge.model)
        found = await retrying(self._db, find, self._patience_s)
        if not found:
            raise GraderFault(WRONG, f"the project's catalogue has no model {judge.model!r}")
        spec = found[0].spec
        if judge.effort is not None and judge.effort not in spec.efforts:
            raise GraderFault(WRONG, f"{judge.model} takes no effort {judge.effort!r}")
        return found[0]

    async def ask(
        self,
        project_id: str,
        model: GrantedModel,
        judge: JudgeSpec,
        ask: Callable[[], Question],
        subject: str,
        replay_of: str | None = None,
    ) -> Answer:
        """Make the question once there is a place for its call, and ask it. ``subject``: for the ledger. ``replay_of``: the
        grading whose recording answers.

        Raises GraderBusy ``judge_unavailable``; GraderFault ``judge_misconfigured``, ``judge_refused``,
        ``context_too_long``, ``budget_exhausted``, ``not_recorded``; InvalidVote for an answer that nobody can read.
        """
        async with (
            self._turns.place(project_id, model.id, model.spec.max_concurrency),
            self._client(project_id, model, judge.chat) as client,
        ):
            question = ask()
            one = Ask(
                question.system,
                [UserTurn(text=question.text, images=list(question.images))],
                max_output_tokens=judge.max_output_tokens,
                temperature=judge.temperature,
                effort=judge.effort,
                subject=subject,
                replay_of=replay_of,
            )
            try:
                return await client.ask(one)
            except GatewayAway as error:
                raise GraderBusy(AWAY, error.detail) from error
            except ModelRefused as error:
                raise _meaning(error) from error

    async def close(self) -> None:
        clients, self._clients = self._clients, OrderedDict()
        for shared in clients.values():
            await shared.client.close()

    @asynccontextmanager
    async def _client(self, project_id: str, model: GrantedModel, chat: bool) -> AsyncGenerator[ModelClient]:
        key = (project_id, model.model_dump_json(), chat)
        async with self._connecting:
            shared = self._clients.get(key)
            if shared is None:
                shared = self._clients[key] = _Shared(await self._connected(project_id, model, chat))
            self._clients.move_to_end(key)
            shared.users += 1
        try:
            yield shared.client
        finally:
            shared.users -= 1
            await self._drop_idle()

    async def _connected(self, project_id: str, model: GrantedModel, chat: bool) -> ModelClient:
        try:
            token = await asyncio.to_thread(self._way.token)
        except OSError as error:
            raise GraderBusy(AWAY, "the gateway has not started yet") from error
        headers = own_headers(project_id, "judge", model.spec.name)
        try:
            return self._connect(reach_of(str(self._way.socket), model.spec, token, chat=chat, headers=headers))
        except Invalid as error:
            raise GraderFault(WRONG, error.detail) from error

    async def _drop_idle(self) -> None:
        idle = [key for key, shared in self._clients.items() if not shared.users]
        for key in idle[: max(0, len(self._clients) - MOST_CLIENTS)]:
            await self._clients.pop(key).client.close()


def checked(answer: Answer) -> str:
    """Return the text of an answer that ended by itself. Raises InvalidVote."""
    if answer.stop != "end":
        raise InvalidVote(_STOPS.get(answer.stop, "stopped"))
    return answer.text


def _meaning(error: ModelRefused) -> GraderBusy | GraderFault | InvalidVote:
    if error.type == "provider_failed" and error.fields.get("http_status") == 400:
        return GraderFault(WRONG, error.detail)  # its word on our key, or there is none
    if error.type == "provider_failed" or error.type in _AGAIN:
        return GraderBusy(AWAY, error.detail)
    if error.type == "bad_answer":
        return InvalidVote("bad_answer")
    return GraderFault(error.type if error.type in _ENDS else "judge_refused", error.detail)


async def _find(tx: Tx, *, project_id: str, name: str) -> list[GrantedModel]:
    return await run_models.granted_models(tx, project_id, [name])
