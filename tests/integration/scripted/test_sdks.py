"""The official SDKs read what the provider sends; usage is what the provider's log says was sent."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from google.genai import types as genai_types

from service.domain.models import TokenUsage
from service.models.scripted.server import Scripted

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_TALK = ["text", "empty", "refusal", "truncated", "split", "slow", "thinking", "success", "huge-output"]
_USER: Any = [{"role": "user", "content": "Do it"}]
Ask = Callable[[Scripted, str, bool], TokenUsage]
"""Ask with a scenario, streaming or not, and return the usage that the SDK saw."""


def _client(provider: Scripted, scenario: str, sdk: str = "anthropic", retries: int = 0) -> Any:
    """Untyped: the SDKs' types of several hundred alternatives say nothing here."""
    key = f"sk-scripted-{scenario}"
    if sdk == "anthropic":
        return anthropic.Anthropic(base_url=provider.url, api_key=key, max_retries=retries, timeout=20)
    if sdk == "openai":
        return openai.OpenAI(base_url=f"{provider.url}/v1", api_key=key, max_retries=retries, timeout=20)
    return genai.Client(api_key=key, http_options=genai_types.HttpOptions(base_url=provider.url, timeout=20_000))


def _anthropic(provider: Scripted, scenario: str, stream: bool) -> TokenUsage:
    with closing(_client(provider, scenario)) as client:
        tools: Any = [{"name": "Bash", "description": "Runs", "input_schema": _SCHEMA}]
        if stream:
            with client.messages.stream(model="m", max_tokens=99, messages=_USER, tools=tools) as answer:
                message: Any = answer.get_final_message()
        else:
            message = client.messages.create(model="m", max_tokens=99, messages=_USER, tools=tools)
        usage = message.usage
        return TokenUsage(
            input_tokens=usage.input_tokens, cached_input_tokens=usage.cache_read_input_tokens,
            cache_write_tokens=usage.cache_creation_input_tokens, output_tokens=usage.output_tokens,
            reasoning_tokens=usage.output_tokens_details.thinking_tokens,
        )  # fmt: skip


def _responses(provider: Scripted, scenario: str, stream: bool) -> TokenUsage:
    tools: Any = [{"type": "function", "name": "shell", "parameters": _SCHEMA, "strict": False}]
    with closing(_client(provider, scenario, "openai")) as client:
        if stream:
            response: Any = None
            for event in client.responses.create(model="m", input="Do it", tools=tools, stream=True):
                if event.type in {"response.completed", "response.incomplete"}:
                    response = event.response
        else:
            response = client.responses.create(model="m", input="Do it", tools=tools)
        usage = response.usage
        details = usage.input_tokens_details
        return TokenUsage(
            input_tokens=usage.input_tokens - details.cached_tokens - details.cache_write_tokens,
            cached_input_tokens=details.cached_tokens, cache_write_tokens=details.cache_write_tokens,
            output_tokens=usage.output_tokens, reasoning_tokens=usage.output_tokens_details.reasoning_tokens,
        )  # fmt: skip


def _chat(provider: Scripted, scenario: str, stream: bool) -> TokenUsage:
    tools: Any = [{"type": "function", "function": {"name": "bash", "parameters": _SCHEMA}}]
    with closing(_client(provider, scenario, "openai")) as client:
        if stream:
            chunks = client.chat.completions.create(
                model="m", messages=_USER, tools=tools, stream=True, stream_options={"include_usage": True}
            )
            usage: Any = [chunk.usage for chunk in chunks if chunk.usage is not None][-1]
        else:
            usage = client.chat.completions.create(model="m", messages=_USER, tools=tools).usage
        details = usage.prompt_tokens_details
        return TokenUsage(
            input_tokens=usage.prompt_tokens - details.cached_tokens - details.cache_write_tokens,
            cached_input_tokens=details.cached_tokens, cache_write_tokens=details.cache_write_tokens,
            output_tokens=usage.completion_tokens, reasoning_tokens=usage.completion_tokens_details.reasoning_tokens,
        )  # fmt: skip


def _gemini(provider: Scripted, scenario: str, stream: bool) -> TokenUsage:
    with closing(_client(provider, scenario, "gemini")) as client:
        declared = genai_types.FunctionDeclaration(name="run_shell_command", parameters_json_schema=_SCHEMA)
        config = genai_types.GenerateContentConfig(
            tools=[genai_types.Tool(function_declarations=[declared])],
            automatic_function_calling=genai_types.AutomaticFunctionCallingConfig(disable=True),
        )
        if stream:
            usage: Any = list(client.models.generate_content_stream(model="m", contents="Do it", config=config))[
                -1
            ].usage_metadata
        else:
            usage = client.models.generate_content(model="m", contents="Do it", config=config).usage_metadata
        return TokenUsage(
            input_tokens=usage.prompt_token_count - usage.cached_content_token_count,
            cached_input_tokens=usage.cached_content_token_count,
            output_tokens=usage.candidates_token_count + usage.thoughts_token_count,
            reasoning_tokens=usage.thoughts_token_count,
        )  # fmt: skip


_ASKS = {"anthropic": _anthropic, "responses": _responses, "chat": _chat, "gemini": _gemini}


@pytest.mark.parametrize("scenario", _TALK)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", list(_ASKS))
def test_usage_is_what_was_sent(provider: Scripted, name: str, stream: bool, scenario: str) -> None:
    before = len(provider.requests())
    seen = _ASKS[name](provider, scenario, stream)
    exchange = provider.requests()[before]
    assert seen == exchange.usage
    assert exchange.complete
    assert (exchange.scenario, exchange.turn) == (scenario, 0)


@pytest.mark.parametrize(
    ("scenario", "status"), [("e401", 401), ("e429", 429), ("e500", 500), ("e529", 529), ("echo-key-error", 401)]
)
@pytest.mark.parametrize("name", list(_ASKS))
def test_errors_have_the_dialects_shape(provider: Scripted, name: str, scenario: str, status: int) -> None:
    with pytest.raises((anthropic.APIStatusError, openai.APIStatusError, genai_errors.APIError)) as caught:
        _ASKS[name](provider, scenario, False)
    error: Any = caught.value
    assert getattr(error, "status_code", None) == status or getattr(error, "code", None) == status
    assert "scripted" in str(error)
    assert provider.requests()[-1].usage is None


@pytest.mark.parametrize("scenario", ["cut", "reset", "malformed", "content-type", "redirect", "stream-error"])
@pytest.mark.parametrize("name", list(_ASKS))
def test_broken_answers_are_errors_or_lack_their_end(provider: Scripted, name: str, scenario: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - what an SDK makes of it is its own affair; it must not look like an answer
        _ASKS[name](provider, scenario, True)
    assert provider.requests()[-1].usage is None


def test_a_fault_passes_after_its_times(provider: Scripted) -> None:
    with closing(_client(provider, "e429-twice.1", retries=2)) as client:
        before = len(provider.requests())
        message = client.messages.create(model="m", max_tokens=9, messages=_USER)
        assert message.stop_reason == "end_turn"
        assert [exchange.status for exchange in provider.requests()[before:]] == [429, 429, 200]


def test_embeddings_depend_on_the_text_alone(provider: Scripted) -> None:
    with closing(_client(provider, "success", "openai")) as client:
        first, again = (client.embeddings.create(model="e", input=["a", "b"]) for _ in range(2))
        assert first.data[0].embedding == again.data[0].embedding != first.data[1].embedding
        assert provider.requests()[-1].usage == TokenUsage(input_tokens=first.usage.prompt_tokens)


def test_tokens_are_counted(provider: Scripted) -> None:
    with closing(_client(provider, "success")) as client:
        assert client.messages.count_tokens(model="m", messages=_USER).input_tokens > 0
