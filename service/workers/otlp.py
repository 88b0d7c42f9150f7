"""Traces over OTLP/HTTP, in batches. The one module that knows OpenTelemetry's libraries; loaded only where it is used."""

import asyncio
import gzip
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import metadata
from typing import Any

import httpx
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from service.domain.traces import Span, Trace, Value
from service.workers.tracing import CollectorAway, TraceRefused

BATCH = 512
"""Spans of one request."""
ANSWER_BYTES = 64 << 10
_VERSION = metadata.version("workstead")
_SCOPE = InstrumentationScope("workstead", _VERSION)
_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}
_NEVER = frozenset({400, 413, 422})
"""The trace's fault; whatever else goes wrong is the collector's or its address's, and may be mended."""


class OtlpCollector:
    def __init__(
        self, endpoint: str, headers: Mapping[str, str], service_name: str, timeout_s: float, deployment: str = ""
    ) -> None:
        """``endpoint``: as ``OTEL_EXPORTER_OTLP_ENDPOINT``, the address below which ``/v1/traces`` is."""
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._timeout_s = timeout_s
        self._resource = Resource(
            {"service.name": service_name, "service.version": _VERSION}
            | ({"service.namespace": deployment} if deployment else {})
        )
        self._client = httpx.AsyncClient(
            headers={**headers, "content-type": "application/x-protobuf", "content-encoding": "gzip",
                     "user-agent": f"workstead/{_VERSION}"},
            timeout=timeout_s, trust_env=False, follow_redirects=False,
        )  # fmt: skip

    async def send(self, trace: Trace) -> None:
        """See :class:`service.workers.tracing.Collector`."""
        for spans in _batches(trace.spans):
            await self._post(await asyncio.to_thread(self._encoded, trace.id, spans))

    async def close(self) -> None:
        await self._client.aclose()

    def _encoded(self, trace_id: str, spans: Sequence[Span]) -> bytes:
        readable = [self._readable(trace_id, span) for span in spans]
        return gzip.compress(encode_spans(readable).SerializeToString(), 6)

    async def _post(self, body: bytes) -> None:
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", self._url, content=body) as answer,
            ):
                status, said = answer.status_code, await _start(answer)
        except TimeoutError:
            raise CollectorAway(f"no answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise CollectorAway(type(error).__name__) from error
        if status in _NEVER:
            raise TraceRefused(f"status {status}: {said}")
        if not 200 <= status < 300:
            raise CollectorAway(f"status {status}", _seconds(answer.headers.get("retry-after", "")))

    def _readable(self, trace_id: str, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=_clean(span.name),
            context=_context(trace_id, span.id),
            parent=None if span.parent is None else _context(trace_id, span.parent),
            resource=self._resource,
            attributes={key: _plain(value) for key, value in span.attributes.items()},
            kind=_KINDS[span.kind],
            status=Status() if span.error is None else Status(StatusCode.ERROR, _clean(span.error)),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
            instrumentation_scope=_SCOPE,
        )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(when: datetime) -> int:
    return round(when.timestamp() * 1_000_000) * 1000


def _plain(value: Value) -> Any:
    if isinstance(value, str):
        return _clean(value)
    return value if isinstance(value, bool | int | float) else [_clean(one) for one in value]


def _clean(text: str) -> str:
    """Protocol buffers take no half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def _seconds(value: str) -> float:
    return float(value) if value.isdecimal() and len(value) < 6 else 0.0


async def _start(answer: httpx.Response) -> str:
    """Return the beginning of what was said; a longer answer is not read."""
    said = b""
    async for piece in answer.aiter_bytes():
        said += piece
        if len(said) > ANSWER_BYTES:
            break
    return said[:200].decode(errors="replace")


def _batches(spans: Sequence[Span]) -> list[Sequence[Span]]:
    return [spans[at : at + BATCH] for at in range(0, len(spans), BATCH)]
