"""Who did what: append only."""

from typing import Any

from service.domain.cleaning import clean_json, clean_str
from service.store.database import Tx
from service.store.tables import audit_log


async def record(
    tx: Tx, project_id: str, actor: str, action: str, subject: str, detail: dict[str, Any] | None = None
) -> None:
    """Note that ``actor`` (a token's id, or a process) did ``action`` to ``subject``."""
    values = {
        "project_id": project_id,
        "actor": actor,
        "action": action,
        "subject": clean_str(subject)[0],
        "detail": clean_json(detail or {}),
    }
    await tx.execute(audit_log.insert().values(values))
