"""The checker as one file that the room's Python runs."""

from functools import cache

from service.evidence.bundling import bundle

PACKAGE = "service.evidence.integrity.checker"


@cache
def checker_bundle() -> bytes:
    return bundle([PACKAGE], f"{PACKAGE}.program:main")
