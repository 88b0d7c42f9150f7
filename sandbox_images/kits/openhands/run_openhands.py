#!/opt/kit/python/bin/python3 -I
"""Runs OpenHands' default agent on one task: ``openhands-run SETTINGS.json``.

Standard output is one JSON object per line: the SDK's events as they come, each with its ``kind``, and at the end one of
kind ``WorksteadEnd``. What the SDK prints itself goes to standard error. The exit code is 0 when the agent finished, 3 at
the limit of turns, 1 otherwise.
"""

import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_CODES = {"finished": 0, "limit": 3}
_STOPPED = 128
_MOST_CHARACTERS = 4000


class Teller:
    """Writes lines to what was standard output; from then on standard output is standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self.errors: list[str] = []
        """Codes of the errors that ended the conversation."""

    def event(self, event: Any) -> None:
        if type(event).__name__ == "ConversationErrorEvent":
            self.errors.append(event.code)
        self.line(event.model_dump_json(exclude_none=True))

    def line(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def main(settings: dict[str, Any]) -> int:
    teller = Teller()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    end: dict[str, Any] = {"kind": "WorksteadEnd", "status": "error", "error": "", "usage": None}
    conversation: Any = None
    try:
        conversation = _conversation(settings, teller)
        conversation.send_message(settings["prompt"])
        conversation.run()
        status = conversation.state.execution_status.value
        end["status"] = "limit" if "MaxIterationsReached" in teller.errors else status
    except SystemExit as stopped:
        end |= {"status": "stopped", "error": f"signal {int(str(stopped.code)) - _STOPPED}"}
    # The edge of this process: whatever the SDK raises is how the run ended, and the last line says it.
    except Exception as error:  # noqa: BLE001
        end["error"] = f"{type(error).__name__}: {error}"[:_MOST_CHARACTERS]
    finally:
        if conversation is not None:
            end["usage"] = _usage(conversation)
        teller.line(json.dumps(end))
    if conversation is not None:
        conversation.close()
    return _CODES.get(str(end["status"]), 1)


def _conversation(settings: dict[str, Any], teller: Teller) -> Any:
    # Only now: what the SDK prints while it is imported goes to standard error.
    sdk, preset = import_module("openhands.sdk"), import_module("openhands.tools.preset.default")
    llm = sdk.LLM(usage_id="agent", api_key=os.environ["OPENHANDS_TOKEN"], **settings["llm"])
    agent = preset.get_default_agent(llm, cli_mode=True)
    if settings.get("system_prompt"):
        context = sdk.AgentContext(system_message_suffix=settings["system_prompt"])
        agent = agent.model_copy(update={"agent_context": context})
    limit = {"max_iteration_per_run": settings["max_turns"]} if settings.get("max_turns") else {}
    return sdk.Conversation(
        agent, workspace=settings["workspace"], callbacks=[teller.event], visualizer=None, persistence_dir=None, **limit
    )


def _usage(conversation: Any) -> dict[str, Any] | None:
    total = conversation.conversation_stats.get_combined_metrics().accumulated_token_usage
    return None if total is None else total.model_dump(mode="json")


def _stop(number: int, frame: object) -> None:
    del frame
    # A second one must not break the last words.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(_STOPPED + number)


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_bytes())))
