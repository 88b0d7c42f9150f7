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
from pathlib import Path
from typing import Any

_CODES = {"finished": 0, "limit": 3}
_STOPPED = 128


def main(settings: dict[str, Any]) -> int:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def say(line: str) -> None:
        out.write(line + "\n")
        out.flush()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    end = {"kind": "WorksteadEnd", "status": "error", "error": "", "usage": None}
    errors: list[str] = []
    conversation = None
    try:
        conversation = _conversation(settings, lambda event: _note(event, errors, say))
        conversation.send_message(settings["prompt"])
        conversation.run()
        end["status"] = "limit" if "MaxIterationsReached" in errors else conversation.state.execution_status.value
    except SystemExit as stopped:
        end |= {"status": "stopped", "error": str(stopped)}
    except Exception as error:  # whatever the SDK raises is how the run ended: it is said, and the exit code says it too
        end["error"] = f"{type(error).__name__}: {error}"[:4000]
    finally:
        end["usage"] = None if conversation is None else _usage(conversation)
        say(json.dumps(end))
        if conversation is not None:
            conversation.close()
    return _CODES.get(str(end["status"]), 1)


def _conversation(settings: dict[str, Any], callback: Any) -> Any:
    # Only now: what the SDK prints while it is imported goes to standard error.
    from openhands.sdk import LLM, AgentContext, Conversation
    from openhands.tools.preset.default import get_default_agent

    llm = LLM(usage_id="agent", api_key=os.environ["OPENHANDS_TOKEN"], **settings["llm"])
    agent = get_default_agent(llm, cli_mode=True)
    if settings.get("system_prompt"):
        context = AgentContext(system_message_suffix=settings["system_prompt"])
        agent = agent.model_copy(update={"agent_context": context})
    limit = {"max_iteration_per_run": settings["max_turns"]} if settings.get("max_turns") else {}
    return Conversation(
        agent, workspace=settings["workspace"], callbacks=[callback], visualizer=None, persistence_dir=None, **limit
    )


def _note(event: Any, errors: list[str], say: Any) -> None:
    if type(event).__name__ == "ConversationErrorEvent":
        errors.append(event.code)
    say(event.model_dump_json(exclude_none=True))


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
