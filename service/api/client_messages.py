"""What a remote driver says to the task's simulated client, the same for REST and MCP."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from service.api.driving import Action, Driven
from service.api.rendering import View
from service.domain.agents import Driver
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.ids import new_id
from service.lifecycle.bridge_frames import Frame
from service.lifecycle.simulated_client import ATTACHMENT_CHARS, MAX_ATTACHMENTS, MESSAGE_CHARS
from service.store import tasks

ANSWER_S = 300.0
"""For the client's answer, beyond what is waited for its model's provider."""


class Attachment(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    content: Annotated[str, Field(max_length=ATTACHMENT_CHARS)]
    """Text: the client can read, and opens no files."""


class MessageRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    text: Annotated[str, Field(min_length=1, max_length=MESSAGE_CHARS)]
    attachments: list[Attachment] = Field(default_factory=list[Attachment], max_length=MAX_ATTACHMENTS)
    message_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] | None = None
    """The same id again is the same message: it waits for the reply, or returns it, and is counted once."""


class MessageReply(View):
    message_id: str
    text: str
    left: int
    """Messages that the client still answers."""


async def send_message(driven: Driven, body: MessageRequest) -> MessageReply:
    """Raises NotFound ``no_client``, Conflict ``no_messages_left``, ``not_for_people``, ``lease_lost``, Unavailable
    ``client_unavailable`` (nothing is counted), Invalid ``bad_attachments``."""
    patience_s = await _check(driven, body)
    id = body.message_id or new_id("msg")
    attachments = {one.name: one.content for one in body.attachments}
    action = Action(id, "message_client", {"text": body.text, "attachments": sorted(attachments)})
    said = json.dumps({"text": body.text, "attachments": attachments}).encode()
    seconds = patience_s + ANSWER_S
    frame = await driven.perform(action, {"call": "message"}, said, seconds=seconds, result=_result)
    return MessageReply(message_id=id, text=str(frame.head["text"]), left=int(frame.head["left"]))


async def _check(driven: Driven, body: MessageRequest) -> float:
    """Refuse what no client would get; return the run's patience with providers in seconds."""
    if len({one.name for one in body.attachments}) != len(body.attachments):
        raise Invalid("bad_attachments", "two attachments have the same name")
    async with driven.state.db.transaction() as tx:
        run, _ = await driven.hold(tx)
        task = await tasks.get(tx, run.project_id, run.task_id)
    if run.driver is not Driver.REMOTE:
        raise Conflict("not_for_people", "the simulated client answers agents; a person's run has none")
    if task is None or task.manifest.client is None:
        raise NotFound("no_client", "the task has no client")
    return run.budget.provider_patience_s


def _result(frame: Frame) -> dict[str, Any]:
    return {"output": frame.head["text"], "left": frame.head["left"], "is_error": False}
