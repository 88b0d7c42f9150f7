"""What a dialect gives to the gateway. Everything here is pure: no I/O, no clock, no store.

A request passes: ``route`` → ``read`` → (policy, budget) → ``rewrite`` → upstream; its answer passes a :class:`Meter`
byte for byte while it is streamed on unchanged. What a dialect does not understand it lets through and counts as
unknown; it never raises on an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import quote

from service.domain.models import Dialect, ModelSpec, TokenUsage
from service.domain.policies import ProviderTools


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint of a dialect."""

    dialect: Dialect
    kind: str
    """``messages``, ``count_tokens``, ``responses``, ``compact``, ``chat``, ``embeddings``, ``generate``,
    ``stream_generate``, ``opaque``; ``models`` is the list that the gateway answers itself."""
    upstream_path: str
    """Path below the model's ``base_url``, built from fixed parts, never copied; ``{model}`` stands for the upstream's
    id. Use :meth:`target`."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Query parameters that are passed on (a fixed set per route)."""
    model: str | None = None
    """Model id, where the path names it (Gemini)."""
    generates: bool = True
    """It produces tokens that cost: budgets of tokens and dollars apply."""
    json_body: bool = True
    """The body is a JSON object, which is read, rewritten and sent as it was written anew (never the client's bytes: a
    repeated key reads differently elsewhere). False: bytes pass as they came, and ``read`` gets an empty mapping."""

    def target(self, upstream_id: str) -> str:
        """Return the path below ``base_url`` for a model that the upstream knows as ``upstream_id``."""
        return self.upstream_path.replace("{model}", quote(upstream_id, safe=""))


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A provider-side tool that a request names."""

    name: str
    """As in the provider's documentation, e.g. ``web_search_20250305``; ``unknown:<type>`` for a type not in our list."""
    at: Sequence[str | int]
    """Where in the body."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    model: str | None
    streaming: bool
    max_output_tokens: int | None
    """What the request itself allows; null: the provider's own bound."""
    server_tools: Sequence[ServerTool] = ()
    estimated_input_tokens: int = 0
    """A cheap guess (bytes of text / 4, images by a flat rate) that is only used to reserve budget."""


class BadBody(Exception):
    """The request's body is not what the route takes; ``str()`` says why, for the client."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is done to a body before it leaves."""

    upstream_id: str
    """Model id that the upstream knows; replaces the requested one."""
    provider_tools: ProviderTools = ProviderTools.DENY
    deny_hosts: Sequence[str] = ()
    """Goes into the blocked domains of an allowed search tool where the dialect has them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer said, known when it has ended (or was cut)."""

    usage: TokenUsage | None
    """Null: not told, or the answer was cut before it was."""
    reported_model: str | None = None
    provider_request_id: str | None = None
    server_tools: Mapping[str, int] = field(default_factory=dict[str, int])
    """Provider-side tool → uses."""
    error: str | None = None
    """Error type that the provider sent inside a 200 stream."""
    complete: bool = False
    """The answer's own end was seen (``message_stop``, ``[DONE]``, ``response.completed``, a whole JSON body …)."""
    finish_reason: str | None = None
    """Why the model stopped, in the dialect's own words; null: not told."""
    overloaded: bool = False
    """The error is the provider's state, not this request's fault: worth another try."""


class Meter(Protocol):
    """Reads one answer as it passes, in pieces that may be cut anywhere, also inside a UTF-8 character or an SSE frame.

    Memory is bounded: an event or body longer than the limit is skipped and the usage becomes unknown. Content
    encodings are read where the standard library or zstandard can (not ``br``), but the gateway asks for ``identity``.
    """

    def feed(self, data: bytes) -> None: ...

    def first_token_seen(self) -> bool:
        """Tell whether anything of the model's output has passed."""
        ...

    def answer(self) -> Answer:
        """Return what was said. The answer is over for the meter then: later bytes are not read."""
        ...


class DialectRules(Protocol):
    name: Dialect

    def route(self, method: str, path: str, query: Mapping[str, str]) -> Route | None:
        """Return the endpoint of a decoded, normalised path as clients use it (with or without a dialect prefix), or None."""
        ...

    def read(self, route: Route, body: Mapping[str, Any]) -> RequestFacts:
        """Raises BadBody."""
        ...

    def rewrite(
        self, route: Route, body: dict[str, Any], policy: Policy
    ) -> tuple[dict[str, Any], Sequence[ServerTool]]:
        """Return the body that leaves, and the tools that were taken out. Forces what counting needs
        (``stream_options.include_usage``). Never changes ``body`` itself. Raises BadBody (policy ``refuse``)."""
        ...

    def credential_headers(self, secret: str) -> Mapping[str, str]:
        """Return the header that carries the real key."""
        ...

    def meter(
        self, route: Route, *, streaming: bool, content_type: str, content_encoding: str, spec: ModelSpec
    ) -> Meter: ...

    def refusal(self, route: Route | None, status: int, type_: str, message: str) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of an error of ours in the dialect's own shape; ``type_`` is our stable type."""
        ...


Side = Literal["planted", "local", "public"]
"""Where a request came in: a run's own socket, the Unix socket of our loops and judges, or the public port."""
