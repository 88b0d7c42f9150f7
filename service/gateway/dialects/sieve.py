"""Provider-side tools are egress (NEEDS A2): what is found in a body, and what of it may leave."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlsplit

from service.domain.policies import ProviderTools
from service.gateway.dialects.contract import Policy, ServerTool
from service.gateway.dialects.reading import host_matches, refuse

Path = tuple[str | int, ...]
Entry = Mapping[str, Any]

URL_SOURCE = "url_source"
"""A picture or document that the provider would fetch itself: a way out like any other."""
REMOVED_URL = "[left out: in this run the provider fetches nothing from the network]"
UNCHANGED_POLICY = Policy(upstream_id="")
_DEPTH = 12


class _Removed:
    pass


REMOVED: Final = _Removed()
Edit = Callable[[Entry, Path], Entry | _Removed]


@dataclass(slots=True)
class Sieve:
    """Judges one body's entries by the run's policy and remembers what fell through."""

    policy: Policy
    removed: list[ServerTool] = field(default_factory=list[ServerTool])
    names: set[str] = field(default_factory=set[str])
    """The names by which requests refer to the removed entries."""

    @property
    def allows(self) -> bool:
        return self.policy.provider_tools is ProviderTools.ALLOW

    def judge(
        self,
        name: str,
        entry: Entry,
        at: Path,
        restricted: Callable[[Entry, Sequence[str]], Entry | None] | None = None,
    ) -> Entry | _Removed:
        """Return the entry as it may leave. ``restricted`` keeps a web tool away from denied hosts, or returns None."""
        if self.allows:
            denied = self.policy.deny_hosts
            kept = restricted(entry, denied) if restricted is not None and denied else entry
            if kept is not None:
                return kept
        self.drop(name, at)
        if isinstance(label := entry.get("name") or entry.get("server_label"), str):
            self.names.add(label)
        return REMOVED

    def drop(self, name: str, at: Path) -> None:
        self.removed.append(ServerTool(name, at))

    def fetches(self, url: object) -> bool:
        """Tell whether the provider would fetch ``url`` although this run may not."""
        if not isinstance(url, str) or url.lower().startswith("data:"):
            return False
        return not self.allows or any(host_matches(h, _host(url)) for h in self.policy.deny_hosts)

    def result(self, body: dict[str, Any]) -> tuple[dict[str, Any], Sequence[ServerTool]]:
        """Raises BadBody where the policy is to refuse."""
        if self.policy.provider_tools is ProviderTools.REFUSE:
            refuse(self.removed)
        return body, self.removed


def walk(value: object, at: Path, edit: Edit, inside: frozenset[str], depth: int = _DEPTH) -> Any:
    """Return ``value`` with every object edited that is reached through arrays and the keys ``inside``.

    The same object comes back where nothing changed; ``REMOVED`` where it is to go. Deeper than any API nests its
    content, objects are left out.
    """
    if depth == 0:
        return REMOVED if isinstance(value, dict | list) else value
    if isinstance(value, list):
        before = cast("list[Any]", value)
        after = [walk(v, (*at, i), edit, inside, depth - 1) for i, v in enumerate(before)]
        same = all(a is b for a, b in zip(after, before, strict=True))
        return before if same else [v for v in after if v is not REMOVED]
    if isinstance(value, dict):
        return _walk_object(cast("dict[str, Any]", value), at, edit, inside, depth)
    return value


def _walk_object(value: dict[str, Any], at: Path, edit: Edit, inside: frozenset[str], depth: int) -> Any:
    edited = edit(value, at)
    if isinstance(edited, _Removed):
        return REMOVED
    changes: dict[str, Any] = {}
    for key in inside & edited.keys():
        new = walk(edited[key], (*at, key), edit, inside, depth - 1)
        if new is not edited[key]:
            changes[key] = new
    if not changes:
        return edited
    return {k: v for k, v in {**edited, **changes}.items() if v is not REMOVED}


def replace(body: dict[str, Any], key: str, value: object) -> None:
    """Put an edited part back; what is empty now goes entirely."""
    if value is REMOVED or (value == [] and body[key] != []):
        del body[key]
    else:
        body[key] = value


def without_denied(domains: object, denied: Sequence[str]) -> list[str] | None:
    """Return the allowed domains that no denied host touches; null where none is left or none was named."""
    if not isinstance(domains, list):
        return None
    kept = [d for d in cast("list[Any]", domains) if isinstance(d, str) and not any(host_matches(h, d) for h in denied)]
    return kept or None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
