"""Usage blocks of both of OpenAI's languages, with what compatible providers make of them."""

from collections.abc import Mapping
from typing import Any

from service.domain.models import TokenUsage
from service.gateway.dialects.reading import count, mapping


def chat_usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    """Chat Completions and embeddings; null where the block names no input."""
    return _usage(usage, "prompt_tokens", "completion_tokens")


def responses_usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    """Responses; null where the block names no input."""
    return _usage(usage, "input_tokens", "output_tokens")


def _usage(usage: Mapping[str, Any], input_key: str, output_key: str) -> TokenUsage | None:
    total_in = count(usage.get(input_key))
    if total_in is None:
        return None
    read_from = mapping(usage.get(f"{input_key}_details"))
    cached = count(read_from.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")) or 0
    written = count(read_from.get("cache_write_tokens")) or 0
    cached = min(cached, total_in)
    written = min(written, total_in - cached)
    output, reasoning = _output(usage, total_in, output_key)
    return TokenUsage(
        input_tokens=total_in - cached - written,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=min(reasoning, output),
    )


def _output(usage: Mapping[str, Any], total_in: int, key: str) -> tuple[int, int]:
    """Some compatible providers tell reasoning beside the output instead of within it; their total gives them away."""
    output = count(usage.get(key)) or 0
    reasoning = count(mapping(usage.get(f"{key}_details")).get("reasoning_tokens")) or 0
    if reasoning and count(usage.get("total_tokens")) == total_in + output + reasoning:
        output += reasoning
    return output, reasoning
