"""The cases of a probe: what happens to one deliverable's document, by the name of its condition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from service.domain.evidence import EvidenceDocument
from service.domain.probes import Section
from service.lifecycle.probing import conditions
from service.lifecycle.probing.injections import BENIGN, INJECTIONS

REPEAT, ALTERED, INJECTION, DRIFT = "repeat/", "altered/", "injection/", "drift/"
ORDER, LENGTH = "order", "length"
OTHER_TASK = f"{ALTERED}other_task"
Change = Callable[[EvidenceDocument], EvidenceDocument]


@dataclass(frozen=True, slots=True)
class Case:
    condition: str
    change: Change | None = None
    """Null: the document as it is, or somebody else's."""


def cases(sections: Sequence[Section], repeats: int) -> list[Case]:
    """Return the cases of every deliverable: the unaltered ones first, once where nobody asks for repeats."""
    found = [Case(f"{REPEAT}{n}") for n in range(repeats if Section.REPEATS in sections else 1)]
    if Section.ALTERED in sections:
        found += [Case(f"{ALTERED}quarter", conditions.quarter), Case(f"{ALTERED}empty", conditions.nothing)]
        found.append(Case(OTHER_TASK))
    if Section.INJECTION in sections:
        found += [Case(f"{INJECTION}{i.family}", partial(conditions.injected, injection=i)) for i in INJECTIONS]
    if Section.DRIFT in sections:
        found += [Case(f"{DRIFT}{kind}", partial(conditions.with_note, text=text)) for kind, text in BENIGN.items()]
    if Section.ORDER in sections:
        found.append(Case(ORDER, conditions.reversed_files))
    if Section.LENGTH in sections:
        found.append(Case(LENGTH, conditions.lengthened))
    return found
