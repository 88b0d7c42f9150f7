"""ATIF 1.7: steps numbered from 1, results beside their calls, agent's fields on agent's steps only."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.domain.events import Event, EventType
from service.domain.trajectory import MOST_CHARS, TYPES, About, atif

START = datetime(2026, 1, 1, tzinfo=UTC)
ABOUT = About("run_1", 1, "claude-code", "2.1", "anthropic/x", "high", "Do it.", START, {"task": "t"})
AGENT_ONLY = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}
STEP = {"step_id", "timestamp", "source", "message", "observation", *AGENT_ONLY}


def log(*entries: tuple[str, dict[str, Any]], attempt: int = 1) -> list[Event]:
    return [
        Event("run_1", n, attempt, kind, START + timedelta(seconds=n), payload)
        for n, (kind, payload) in enumerate(entries, 1)
    ]


def asked(n: int) -> tuple[str, dict[str, Any]]:
    return EventType.MODEL_REQUEST, {
        "request_id": f"r{n}",
        "state": "started",
        "purpose": "agent",
        "requested_model": "x-1",
    }


def answered(n: int, **fields: Any) -> tuple[str, dict[str, Any]]:
    usage = {
        "input_tokens": 10,
        "cached_input_tokens": 5,
        "cache_write_tokens": 1,
        "output_tokens": 7,
        "cost_usd": "0.25",
    }
    return EventType.MODEL_REQUEST, {
        "request_id": f"r{n}", "state": "finished", "purpose": "agent", "usage_known": True, "reported_model": "x-1-0925",
        **usage, **fields,
    }  # fmt: skip


def problems(document: dict[str, Any]) -> list[str]:
    """What a strict reader of ATIF 1.7 would refuse."""
    found: list[str] = []
    for n, step in enumerate(document["steps"], 1):
        found += [f"{n}: step_id"] * (step["step_id"] != n)
        found += [f"{n}: {key}" for key in step.keys() - STEP]
        found += [f"{n}: {key} of a {step['source']}" for key in step.keys() & AGENT_ONLY if step["source"] != "agent"]
        found += [f"{n}: source"] * (step["source"] not in ("user", "agent", "system"))
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        found += [f"{n}: arguments" for call in step.get("tool_calls", []) if not isinstance(call["arguments"], dict)]
        for result in step.get("observation", {}).get("results", []):
            found += [f"{n}: dangling"] * (result.get("source_call_id", next(iter(calls), None)) not in calls | {None})
        datetime.fromisoformat(step["timestamp"])
    return found


def test_a_conversation() -> None:
    document = atif(
        ABOUT,
        log(
            asked(1), (EventType.AGENT_THINKING, {"text": "hm"}), (EventType.AGENT_MESSAGE, {"text": "I look"}),
            (EventType.TOOL_CALL, {"id": "c1", "name": "bash", "arguments": {"cmd": "ls"}}), answered(1), asked(2),
            (EventType.TOOL_RESULT, {"id": "c1", "output": "a.csv", "is_error": False}),
            (EventType.AGENT_MESSAGE, {"text": "Done"}), answered(2, cost_usd=None),
            (EventType.AGENT_FINAL, {"status": "success", "text": "Done"}),
        ),
    )  # fmt: skip
    assert problems(document) == []
    assert document["schema_version"] == "ATIF-v1.7"
    first, second, third = document["steps"]
    assert (first["source"], first["message"]) == ("user", "Do it.")
    assert (second["reasoning_content"], second["message"]) == ("hm", "I look")
    assert second["observation"]["results"] == [{"content": "a.csv", "source_call_id": "c1"}]
    assert second["metrics"] == {"prompt_tokens": 16, "completion_tokens": 7, "cached_tokens": 5, "cost_usd": 0.25}
    assert second["model_name"] == "x-1-0925"
    assert "cost_usd" not in third["metrics"]
    assert document["final_metrics"] == {
        "total_prompt_tokens": 32, "total_completion_tokens": 14, "total_cached_tokens": 10, "total_steps": 3,
        "total_cost_usd": 0.25,
    }  # fmt: skip
    assert document["extra"]["final"]["status"] == "success"


def test_without_requests_results_end_a_step() -> None:
    document = atif(
        ABOUT,
        log(
            (EventType.TOOL_CALL, {"id": "1", "name": "a", "arguments": None}), (EventType.TOOL_RESULT, {"id": "1", "output": {"x": 1}}),
            (EventType.AGENT_MESSAGE, {"text": "next"}), (EventType.TOOL_RESULT, {"id": "nobody", "output": "?"}),
        ),
    )  # fmt: skip
    assert [s["source"] for s in document["steps"]] == ["user", "agent", "agent"]
    assert document["steps"][1]["tool_calls"][0]["arguments"] == {"value": None}
    assert document["steps"][2]["observation"]["results"] == [{"content": "?"}]
    assert problems(document) == []


def test_unknown_usage_and_other_purposes_are_no_figures() -> None:
    client = (EventType.MODEL_REQUEST, {"request_id": "c", "state": "started", "purpose": "client"})
    document = atif(ABOUT, log(asked(1), answered(1, usage_known=False), client))
    assert "metrics" not in document["steps"][1]
    assert len(document["steps"]) == 2
    assert "total_cost_usd" not in document["final_metrics"]


def test_other_attempts_are_left_out_and_long_texts_cut_with_a_mark() -> None:
    long = (EventType.AGENT_MESSAGE, {"text": "x" * (MOST_CHARS + 5)})
    document = atif(ABOUT, [*log(long), *log((EventType.AGENT_MESSAGE, {"text": "other"}), attempt=2)])
    (_, step) = document["steps"]
    assert step["message"].endswith("[5 more characters are in the event log]")
    assert "other" not in str(document)


@given(st.lists(st.tuples(st.sampled_from([*TYPES, "of.the.future"]), st.dictionaries(
    st.sampled_from(["id", "text", "name", "arguments", "output", "state", "request_id", "usage_known", "is_error",
                     "actions", "results", "before", "after", "images", "title"]),
    st.sampled_from(["a", "b", "started", "finished", None, True, 3, {"k": 1}, ["x"], [{"sha256": "s", "text": "t"}]])))))  # fmt: skip
def test_any_log_is_a_trajectory(entries: list[tuple[str, dict[str, Any]]]) -> None:
    assert problems(atif(ABOUT, log(*entries))) == []


CLICK = {"type": "click", "x": 10, "y": 20, "raw": {"vocabulary": "openai.computer", "payload": {"type": "click"}}}
PICTURE = {"sha256": "a" * 64, "format": "webp", "width": 1280, "height": 800, "size_bytes": 9}
BATCH: dict[str, Any] = {
    "id": "c1", "by": "remote", "actions": [CLICK, {"type": "cursor_position"}],
    "results": [{"index": 0}, {"index": 1, "text": "10,20"}], "before": {**PICTURE, "sha256": "b" * 64},
    "after": PICTURE, "images": [{**PICTURE, "sha256": "c" * 64, "format": "png"}], "title": "Sheet 1", "error": None, "took_s": 0.5,
}  # fmt: skip
SHOWN = [
    {"type": "text", "text": "10,20"},
    {"type": "image", "source": {"media_type": "image/png", "path": f"/v1/runs/run_1/desktop/pictures/{'c' * 64}"}},
    {"type": "image", "source": {"media_type": "image/webp", "path": f"/v1/runs/run_1/desktop/pictures/{'a' * 64}"}},
]


def test_a_batch_on_the_screen_is_a_call_with_pictures() -> None:
    document = atif(ABOUT, log((EventType.DESKTOP_ACTION, BATCH)))
    assert problems(document) == []
    (_, step) = document["steps"]
    (call,) = step["tool_calls"]
    assert (call["tool_call_id"], call["function_name"]) == ("c1", "computer")
    assert call["arguments"]["actions"][0] == {"type": "click", "x": 10, "y": 20}
    assert call["extra"]["raw"] == [CLICK["raw"], None]
    (result,) = step["observation"]["results"]
    assert result["content"] == SHOWN
    assert (result["extra"]["window"], result["extra"]["by"]) == ("Sheet 1", "remote")
    assert result["extra"]["before"].endswith("b" * 64)


def test_a_batch_belongs_to_the_call_that_it_was_made_for() -> None:
    call = (EventType.TOOL_CALL, {"id": "c1", "name": "desktop_actions", "arguments": {"n": 2}})
    said = (EventType.TOOL_RESULT, {"id": "c1", "output": "done"})
    document = atif(ABOUT, log(call, (EventType.DESKTOP_ACTION, BATCH | {"error": "desktop_lost"}), said))
    assert problems(document) == []
    (_, step) = document["steps"]
    (made,) = step["tool_calls"]
    assert (made["function_name"], made["arguments"]) == ("desktop_actions", {"n": 2})
    assert made["extra"]["actions"][0]["type"] == "click"
    first, second = step["observation"]["results"]
    assert first["content"][0] == {"type": "text", "text": "10,20\ndesktop_lost"}
    assert second == {"content": "done", "source_call_id": "c1"}
