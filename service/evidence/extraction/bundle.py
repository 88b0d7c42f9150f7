"""The extracting program as one file that the room's Python runs. It uses the checker's modules."""

from functools import cache

from service.evidence import bundling
from service.evidence.integrity.bundle import PACKAGE as CHECKER

PACKAGE = "service.evidence.extraction.inside"


@cache
def extractor_bundle() -> bytes:
    return bundling.bundle([CHECKER, PACKAGE, f"{PACKAGE}.readers"], f"{PACKAGE}.program:main")
