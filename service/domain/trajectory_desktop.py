"""What was done on a run's screen, as ATIF 1.7 has it: a call of the tool ``computer`` and what was seen of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

Json = dict[str, Any]
TOOL = "computer"
_KEPT = ("by", "took_s", "error", "interrupted")


def call_of(payload: Mapping[str, Any], call_id: str) -> Json:
    """Return a batch as a tool call: unified actions as its arguments, the provider's own words in ``extra``."""
    actions = _objects(payload.get("actions"))
    return {
        "tool_call_id": call_id,
        "function_name": TOOL,
        "arguments": {"actions": [{k: v for k, v in action.items() if k != "raw"} for action in actions]},
        "extra": {"raw": [action.get("raw") for action in actions]},
    }


def observation_of(payload: Mapping[str, Any], run_id: str) -> Json:
    """Return what was seen: words, then the pictures that its actions took, then the one after the last of them."""
    results = _objects(payload.get("results"))
    said = [str(r[name]) for r in results for name in ("text", "error", "detail") if r.get(name)]
    said += [str(payload["error"])] if payload.get("error") else []
    pictures = [*_objects(payload.get("images")), *_objects([payload.get("after")])]
    content: list[Json] = [{"type": "text", "text": "\n".join(said)}] if said or not pictures else []
    content += [_image(picture, run_id) for picture in pictures if picture.get("sha256")]
    extra: Json = {"window": payload.get("title"), "results": results}
    extra |= {name: payload[name] for name in _KEPT if payload.get(name) is not None}
    before = payload.get("before")
    if isinstance(before, dict):
        extra["before"] = picture_path(run_id, str(cast("Json", before).get("sha256")))
    return {"content": content or [{"type": "text", "text": ""}], "extra": extra}


def picture_path(run_id: str, sha256: str) -> str:
    """Return the relative URL of a recorded picture."""
    return f"/v1/runs/{run_id}/desktop/pictures/{sha256}"


def _image(picture: Json, run_id: str) -> Json:
    source = {
        "media_type": f"image/{picture.get('format', 'png')}",
        "path": picture_path(run_id, str(picture["sha256"])),
    }
    return {"type": "image", "source": source}


def _objects(value: Any) -> Sequence[Json]:
    return (
        [cast("Json", one) for one in cast("list[Any]", value) if isinstance(one, dict)]
        if isinstance(value, list)
        else []
    )
