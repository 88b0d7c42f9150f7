"""Classes for ``mini --agent-class`` and ``--model-class``: mini-swe-agent's own, saying on standard output what happens.

Each line that starts with ``{"workstead":`` is one object: ``message`` (a message of the conversation with the usage of
its request) or ``end`` (how it ended). All other output is the program's own. Nothing of what it does is changed, but
for one thing: an answer that says the request is at fault is final, where the program would ask ten times.
"""

# The packages are in the kit only.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

import json
import signal
from typing import Any, ClassVar

import litellm
from minisweagent.agents.default import AgentConfig, DefaultAgent
from minisweagent.models.litellm_model import LitellmModel

_STOPPED = 128
# It would print advice at each request for a model that it does not know.
litellm.suppress_debug_info = True


class Config(AgentConfig):
    system_prompt: str = ""
    """Follows the program's own system message."""


class Agent(DefaultAgent):
    def __init__(self, model: Any, env: Any, **settings: Any) -> None:
        settings["system_template"] += "{% if system_prompt %}\n{{ system_prompt }}{% endif %}"
        super().__init__(model, env, config_class=Config, **settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop)

    def add_messages(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        for message in messages:
            say("message", {"message": _without_response(message), "usage": _usage(message)})
        return super().add_messages(*messages)

    def run(self, task: str = "", **values: Any) -> dict[str, Any]:
        status, text = "", ""
        try:
            last = super().run(task, **values)
            status, text = str(last.get("exit_status", "")), str(last.get("submission", ""))
            return last
        except BaseException as error:
            status, text = type(error).__name__, str(error)
            raise
        finally:
            say("end", {"exit_status": status, "text": text[-20_000:], "api_calls": self.n_calls})


class Model(LitellmModel):
    abort_exceptions: ClassVar = [*LitellmModel.abort_exceptions, litellm.exceptions.BadRequestError]


def say(kind: str, body: dict[str, Any]) -> None:
    print(json.dumps({"workstead": kind, **body}, default=str), flush=True)


def _without_response(message: dict[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in message.get("extra", {}).items() if key != "response"}
    return {**message, "extra": extra}


def _usage(message: dict[str, Any]) -> dict[str, Any] | None:
    response = message.get("extra", {}).get("response")
    return response.get("usage") if isinstance(response, dict) else None


def _stop(number: int, frame: object) -> None:
    del frame
    raise SystemExit(_STOPPED + number)
