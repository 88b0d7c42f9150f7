"""OpenTelemetry's semantic conventions for generative AI, as far as runs have what they name. Pure.

Names are those of the conventions' development status in semantic-conventions-genai (November 2026); what they have no
word for is below ``workstead.``.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from service.domain.traces import Value
from service.store.rows import RunRow
from service.store.rows_requests import ModelRequestRow, ServiceCallRow

ERROR = "error.type"
OPERATION, PROVIDER = "gen_ai.operation.name", "gen_ai.provider.name"
CONVERSATION, REQUEST_MODEL = "gen_ai.conversation.id", "gen_ai.request.model"
TOOL_NAME, TOOL_CALL, TOOL_TYPE = "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
OUTPUT = "gen_ai.output.messages"
_PROVIDERS = {
    "google": "gcp.gemini", "gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "mistral": "mistral_ai", "xai": "x_ai",
    "bedrock": "aws.bedrock", "azure": "azure.ai.openai",
}  # fmt: skip
_ENDS = (("/embeddings", "embeddings"), ("count_tokens", "count_tokens"), ("countTokens", "count_tokens"))


def present(values: Mapping[str, Any]) -> dict[str, Value]:
    """Return what has a value; amounts of money as numbers."""
    return {k: float(v) if isinstance(v, Decimal) else v for k, v in values.items() if v is not None and v != ""}


def provider(name: str | None) -> str:
    return _PROVIDERS.get(name or "", name or "unknown")


def operation(row: ModelRequestRow) -> str:
    found = next((word for end, word in _ENDS if end in row.route), None)
    return found or ("generate_content" if row.dialect == "gemini" else "chat")


def of_run(row: RunRow) -> dict[str, Value]:
    return present(
        {
            CONVERSATION: row.id,
            "workstead.run.id": row.id,
            "workstead.project.id": row.project_id,
            "workstead.task.name": row.task_name,
            "workstead.agent.id": row.agent_id,
            "workstead.agent.label": row.agent_label,
            "workstead.sample": row.sample,
            "workstead.attempts": row.attempt,
            "workstead.outcome": row.outcome,
            "workstead.ended_because": row.ended_because,
            "workstead.score": row.score,
            "workstead.max_score": row.max_score,
            "workstead.flags": list(row.flags),
            "workstead.cost_usd": row.cost_usd_all_attempts,
        }
    )


def of_agent(row: RunRow, asked: ModelRequestRow | None) -> dict[str, Value]:
    """Of the phase in which the agent is at work. ``asked``: its first request to a model; null: it made none."""
    return present(
        {
            OPERATION: "invoke_agent",
            CONVERSATION: row.id,
            PROVIDER: None if asked is None else provider(asked.provider),
            REQUEST_MODEL: None if asked is None else asked.requested_model,
            "gen_ai.agent.id": row.agent_id,
            "gen_ai.agent.name": row.agent_label,
        }
    )


def of_request(row: ModelRequestRow) -> dict[str, Value]:
    usage: dict[str, Any] = {}
    if row.usage_known:
        usage = {
            "gen_ai.usage.input_tokens": row.input_tokens + row.cached_input_tokens + row.cache_write_tokens,
            "gen_ai.usage.cache_read.input_tokens": row.cached_input_tokens,
            "gen_ai.usage.cache_creation.input_tokens": row.cache_write_tokens,
            "gen_ai.usage.output_tokens": row.output_tokens,
            "gen_ai.usage.reasoning.output_tokens": row.reasoning_tokens,
        }
    told = {
        OPERATION: operation(row),
        PROVIDER: provider(row.provider),
        CONVERSATION: row.run_id,
        REQUEST_MODEL: row.requested_model,
        "gen_ai.request.stream": row.streaming,
        "gen_ai.response.model": row.reported_model,
        "gen_ai.response.id": row.provider_request_id,
        "gen_ai.response.finish_reasons": None if row.finish_reason is None else [row.finish_reason],
        "gen_ai.response.time_to_first_chunk": row.first_token_s if row.streaming else None,
        "http.response.status_code": row.status,
        "workstead.request.id": row.id,
        "workstead.request.purpose": row.purpose,
        "workstead.request.tries": row.tries,
        "workstead.request.wait_s": row.wait_s,
        "workstead.cost_usd": row.cost_usd,
        "workstead.cost_basis": row.cost_basis,
    }
    return present(told | usage)


def of_call(row: ServiceCallRow) -> dict[str, Value]:
    return present(
        {
            "workstead.service.name": row.service,
            "workstead.service.call.id": row.id,
            "http.request.method": row.method,
            "url.path": row.path,
            "http.response.status_code": row.status,
            "http.response.body.size": row.bytes,
            "workstead.cost_usd": row.cost_usd,
        }
    )
