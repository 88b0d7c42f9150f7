"""Query parameters with open names: ``label.week=48``, ``facet.occupation=…``; and the refusal of unknown ones."""

from collections.abc import Collection

from fastapi import Request

from service.api.auth import TICKET
from service.domain.errors import Invalid

OPEN = ("label.", "facet.")
MAX_FILTERS = 16


def prefixed(request: Request, prefix: str) -> dict[str, str]:
    """Return ``{name: value}`` of the parameters that start with ``prefix``. Raises Invalid for one that is doubled."""
    found: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if not key.startswith(prefix):
            continue
        name = key.removeprefix(prefix)
        if not name or name in found or len(found) >= MAX_FILTERS:
            raise Invalid("bad_filter", f"each {prefix}<name> is given once, and at most {MAX_FILTERS} of them")
        found[name] = value
    return found


def only_known(request: Request, names: Collection[str], open_prefixes: tuple[str, ...] = OPEN) -> None:
    """Raise Invalid for a query parameter that this list does not have: a misspelt filter must not list everything."""
    for name in request.query_params:
        if name not in names and not name.startswith(open_prefixes) and name != TICKET:
            raise Invalid("unknown_filter", f"there is no filter or option {name!r}", known=sorted(names))
