"""The simulated client: another model that holds the task's private facts and answers what the agent asks.

The facts are a hidden asset of the task (``client_facts``). They go into requests of purpose ``client`` and nowhere else: not into the
sandbox, not into the agent's conversation, not into an event. The exchange is the events ``client.message`` and, at the
end, a blob that graders may read.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.errors import Conflict, Fault, Invalid
from service.domain.events import EventType
from service.domain.tasks import FACTS_BYTES, FileRef
from service.lifecycle.client_facts import find_facts
from service.lifecycle.context import Context
from service.lifecycle.loop_journal import LoopJournal
from service.lifecycle.work import Work
from service.models.messages import Answer, Ask, GatewayAway, ModelClient, ModelRefused, Turn, UserTurn
from service.scaffolds.contract import Translated
from service.scaffolds.loops import ClientReply
from service.store.database import Tx, retrying

STEP = "client"
"""Kind of its steps in a journal."""
MESSAGE_CHARS, ATTACHMENT_CHARS, MAX_ATTACHMENTS = 20_000, 50_000, 10
REPLY_TOKENS = 4096
PROMPT_VERSION = 1
TRANSCRIPT = "client_transcript"
"""Name of the artefact."""
_SYSTEM = """\
You play the client of a freelance job. The contractor asks you questions while working on it.

The job as you posted it:
<posting>
{posting}
</posting>

What only you know:
<facts>
{facts}
</facts>

Rules:
- Answer as this client would: briefly, in the first person, in the language of the contractor's message.
- Use the facts where the question calls for them. Do not recite facts that nobody asked for.
- What neither the posting nor the facts say, you do not know or leave to the contractor's judgement; invent nothing.
- You can paste text. You cannot send files, open links, give access to accounts, or do any of the work.
- Do not judge drafts for acceptance, and do not say that you are a model or that there is a fact sheet.
"""
NO_WORDS = "(The client did not answer.)"


_MISSING = (401, 403, 404)
"""What a provider answers whose model or key is not there: nobody's word, whatever was asked."""


class SimulatedClient:
    """One run's client. Replies are steps of the attempt's journal, so none is asked for twice."""

    def __init__(
        self, journal: LoopJournal, model: ModelClient, system: str, max_messages: int, facts_sha256: str
    ) -> None:
        self.max_messages = max_messages
        self._journal = journal
        self._model = model
        self._system = system
        self._facts = facts_sha256
        self._turns: list[Turn] = []
        self._exchange: list[dict[str, Any]] = []

    @classmethod
    async def open(cls, ctx: Context, work: Work, journal: LoopJournal, model: ModelClient) -> "SimulatedClient":
        """Read the facts. Raises Invalid ``no_client``, ``client_facts_missing``, NotFound (their blob is gone)."""
        task, run = work.task, work.run
        if task.client is None:
            raise Invalid("no_client", "the task has no client")

        async def find(tx: Tx) -> FileRef | None:
            return await find_facts(tx, run.task_id, run.project_id, task)

        found = await retrying(ctx.db, find, ctx.timing.database_patience_s)
        if found is None:
            raise Invalid("client_facts_missing", "the facts of the task's client are not made")
        facts = (await asyncio.to_thread(ctx.blobs.read_bytes, found.sha256, FACTS_BYTES)).decode(errors="replace")
        # Not str.format: posting and facts are full of braces.
        system = _SYSTEM.replace("{posting}", task.instruction).replace("{facts}", facts)
        return cls(journal, model, system, task.client.max_messages, found.sha256)

    async def recall(self) -> dict[str, ClientReply]:
        """Take over the exchange so far from the journal; return the replies by the ids of their messages."""
        known: dict[str, ClientReply] = {}
        for n in range(1, self._journal.recorded(STEP) + 1):
            value = await self._journal.step(STEP, _key(n), _not_recorded)
            known[str(value.get("id", ""))] = self._took(n, value)
        return known

    @property
    def sent(self) -> int:
        """Messages that were answered."""
        return len(self._exchange) // 2

    async def reply(self, n: int, text: str, attachments: Mapping[str, str], id: str = "") -> ClientReply:
        """See :class:`service.scaffolds.loops.LoopClient`; ``id`` is the sender's name for the message."""
        if not 1 <= n <= self.max_messages:
            raise Conflict("no_messages_left", f"at most {self.max_messages} messages", max_messages=self.max_messages)
        said = _message(text, attachments)

        async def act() -> dict[str, Any]:
            answer = await self._ask(said)
            body = {"n": n, "sent": said, "attached": sorted(attachments), "answer": answer.model_dump(mode="json")}
            return {**body, "id": id}

        return self._took(n, await self._journal.step(STEP, _key(n), act, _tell))

    async def _ask(self, said: str) -> Answer:
        """A model that refuses says nothing. One that fails, or is not there, is no word of the client's: it must not
        become a question that stayed unanswered, and so a score."""
        try:
            return await self._model.ask(
                Ask(self._system, [*self._turns, UserTurn(text=said)], max_output_tokens=REPLY_TOKENS)
            )
        except ModelRefused as error:
            if error.type in ("provider_failed", "answer_cut"):
                raise GatewayAway("client_unavailable", error.detail) from error
            if error.type == "not_recorded":
                raise Fault("client_not_recorded", f"the recording has no such message: {error.detail}") from error
            if error.fields.get("http_status") in _MISSING:
                raise Fault("client_misconfigured", f"who plays the client cannot be asked: {error.detail}") from error
            return Answer(stop="other", stop_detail=error.type)

    def _took(self, n: int, value: dict[str, Any]) -> ClientReply:
        answer = Answer.model_validate(value["answer"])
        self._turns += [UserTurn(text=value["sent"]), answer]
        words = answer.text.strip() or NO_WORDS
        self._exchange += [
            {"n": n, "from": "agent", "text": value["sent"]},
            {"n": n, "from": "client", "text": words, "model": answer.model},
        ]
        return ClientReply(words, self.max_messages - n)

    def transcript(self) -> str:
        """Return the exchange as JSON, for graders."""
        head = {"v": 1, "prompt_version": PROMPT_VERSION, "facts_sha256": self._facts}
        body = {**head, "max_messages": self.max_messages, "messages": self._exchange}
        return json.dumps(body, ensure_ascii=False)


def _key(n: int) -> str:
    return f"message-{n}"


async def _not_recorded() -> dict[str, Any]:
    raise Fault("journal_broken", "a message that was counted is not recorded")


def _message(text: str, attachments: Mapping[str, str]) -> str:
    parts = [_cut(text, MESSAGE_CHARS)]
    for name, content in list(attachments.items())[:MAX_ATTACHMENTS]:
        parts.append(f"[attached: {_cut(name, 200)}]\n{_cut(content, ATTACHMENT_CHARS)}")
    return "\n\n".join(parts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: {len(text)} characters in all]"


def _tell(value: dict[str, Any]) -> Sequence[Translated]:
    n, answer = value["n"], value["answer"]
    out = {"n": n, "direction": "to_client", "text": value["sent"], "attachments": value["attached"]}
    back: dict[str, Any] = {
        "n": n,
        "direction": "to_agent",
        "text": answer["text"].strip() or NO_WORDS,
        "attachments": [],
    }
    return [Translated(EventType.CLIENT_MESSAGE, out), Translated(EventType.CLIENT_MESSAGE, back)]
