"""Values and answers as NEEDS D1 wants them: times RFC 3339 UTC with milliseconds, models as JSON bytes once."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema
from starlette.responses import Response


class View(BaseModel):
    """What an answer's body is made from. The text below a field is its description in the published schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def rfc3339(value: datetime) -> str:
    """Return ``value`` in UTC, truncated to milliseconds: ``2026-11-01T12:00:00.000Z``."""
    utc = value.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


Timestamp = Annotated[
    datetime,
    PlainSerializer(rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-01T12:00:00.000Z"]}),
]
Digest = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"})]


def sha256_name(hex_digest: str) -> str:
    return f"sha256:{hex_digest}"


def now() -> datetime:
    """Return the host's time; for ages that are shown, never for decisions."""
    return datetime.fromtimestamp(time.time(), UTC)


def answer(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Render ``model`` as the JSON body of an answer."""
    return json_answer(model.model_dump_json().encode(), status, headers)


def json_answer(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    response = Response(body, status, headers, "application/json")
    response.headers.setdefault("Cache-Control", "private, no-store" if status != 200 else "private, no-cache")
    return response
