"""The simulated client: another model that holds the task's private facts and answers what the agent asks.

The facts are a hidden file of the task. They go into requests of purpose ``client`` and nowhere else: not into the
sandbox, not into the agent's conversation, not into an event. The exchange is the events ``client.message`` and, at the
end, a blob that graders may read.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.errors import Invalid
from service.domain.events import EventType
from service.domain.limits import MIB
from service.lifecycle.context import Context
from service.lifecycle.loop_journal import LoopJournal
from service.lifecycle.work import Work
from service.models.messages import Answer, Ask, ModelClient, ModelRefused, Turn, UserTurn
from service.scaffolds.contract import Translated
from service.scaffolds.loops import ClientReply

FACTS_BYTES = MIB
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


class SimulatedClient:
    """One run's client. Replies are steps of the loop's journal, so none is asked for twice."""

    def __init__(self, journal: LoopJournal, model: ModelClient, system: str, max_messages: int) -> None:
        self.max_messages = max_messages
        self._journal = journal
        self._model = model
        self._system = system
        self._turns: list[Turn] = []
        self._exchange: list[dict[str, Any]] = []

    @classmethod
    async def open(cls, ctx: Context, work: Work, journal: LoopJournal, model: ModelClient) -> "SimulatedClient":
        """Read the facts. Raises Invalid ``no_client``, NotFound (their blob is gone)."""
        task = work.task
        if task.client is None:
            raise Invalid("no_client", "the task has no client")
        digest = next(f.sha256 for f in task.hidden if f.path == task.client.facts)
        facts = (await asyncio.to_thread(ctx.blobs.read_bytes, digest, FACTS_BYTES)).decode(errors="replace")
        # Not str.format: posting and facts are full of braces.
        system = _SYSTEM.replace("{posting}", task.instruction).replace("{facts}", facts)
        return cls(journal, model, system, task.client.max_messages)

    async def reply(self, n: int, text: str, attachments: Mapping[str, str]) -> ClientReply:
        """See :class:`service.scaffolds.loops.LoopClient`."""
        if not 1 <= n <= self.max_messages:
            raise Invalid("no_messages_left", f"at most {self.max_messages} messages", max_messages=self.max_messages)
        said = _message(text, attachments)

        async def act() -> dict[str, Any]:
            ask = Ask(self._system, [*self._turns, UserTurn(text=said)], max_output_tokens=REPLY_TOKENS)
            try:
                answer = await self._model.ask(ask)
            except ModelRefused as error:
                answer = Answer(stop="other", stop_detail=error.type)
            return {"n": n, "sent": said, "attached": sorted(attachments), "answer": answer.model_dump(mode="json")}

        value = await self._journal.step("client", f"message-{n}", act, _tell)
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
        body = {"v": 1, "prompt_version": PROMPT_VERSION, "max_messages": self.max_messages, "messages": self._exchange}
        return json.dumps(body, ensure_ascii=False)


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
