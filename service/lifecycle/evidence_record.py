"""Evidence as JSON: kept with the attempt and in its event."""

from dataclasses import asdict
from typing import Any

from service.domain.run_states import Evidence


def to_json(evidence: Evidence) -> dict[str, Any]:
    return {k: v for k, v in asdict(evidence).items() if v is not None}
