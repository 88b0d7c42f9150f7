"""Opens credentials, and keeps them for a moment. The only place where a provider's secret is readable."""

import time
from dataclasses import dataclass

from service.domain.credentials import Use, may_serve
from service.domain.errors import Unavailable
from service.domain.models import ModelSpec
from service.gateway.deployment_keys import DeploymentKeys
from service.gateway.ports import CredentialUnavailable
from service.store import credentials, projects
from service.store.database import Database
from service.store.rows_models import CredentialRow
from service.store.sealed_box import CredentialUnreadable, OpeningKey

FRESH_S = 2.0
"""How long a credential is used without a look at its row: a replaced or removed one goes on for no longer."""
STALE_S = 600.0
"""How long one is used whose row cannot be looked at."""
_MOST = 10_000


@dataclass(slots=True)
class _Opened:
    row: CredentialRow
    secret: str
    looked_at: float


class Vault:
    """The credentials of one gateway process; ``key`` is its own."""

    def __init__(self, db: Database, key: OpeningKey, deployment: DeploymentKeys | None = None) -> None:
        self._db, self._key = db, key
        self._deployment = deployment or DeploymentKeys({})
        self._opened: dict[str, _Opened] = {}

    async def register(self) -> None:
        """Let credentials be sealed for this gateway from now on. Raises Unavailable."""
        async with self._db.transaction() as tx:
            await credentials.register_key(tx, self._key.id, self._key.public)

    async def secret(self, project_id: str, credential_id: str, use: str) -> str:
        """Return the secret. ``use``: who asks (agent, client, judge, check, service).

        Raises CredentialUnavailable (missing, unreadable, or not for this use), Unavailable (the database is away).
        """
        opened = await self._open(credential_id)
        if opened is None or opened.row.project_id != project_id:
            raise CredentialUnavailable("credential_missing", "the credential was removed")
        if not may_serve(opened.row.purpose, Use(use)):
            words = f"a credential for {opened.row.purpose} does not serve {use}"
            raise CredentialUnavailable("credential_purpose", words)
        return opened.secret

    async def deployment(self, project_id: str, spec: ModelSpec, use: str) -> str | None:
        """Return the operator's own key for a model without a credential, if there is one. Raises Unavailable."""
        if not self._deployment.keys:
            return None
        async with self._db.reading() as tx:
            project = await projects.get(tx, project_id)
        return None if project is None else self._deployment.find(project.name, spec.provider, spec.base_url, Use(use))

    async def _open(self, credential_id: str) -> _Opened | None:
        known, now = self._opened.get(credential_id), time.monotonic()
        if known is not None and now - known.looked_at < FRESH_S:
            return known
        try:
            async with self._db.reading() as tx:
                row = await credentials.load(tx, credential_id)
        except Unavailable:
            if known is not None and now - known.looked_at < STALE_S:
                return known
            raise
        if row is None:
            self._opened.pop(credential_id, None)
            return None
        if known is not None and known.row.sealed == row.sealed:
            known.row, known.looked_at = row, now
            return known
        if len(self._opened) >= _MOST:
            self._opened.clear()
        found = self._opened[credential_id] = _Opened(row, self._decrypt(row), now)
        return found

    def _decrypt(self, row: CredentialRow) -> str:
        try:
            return self._key.open(row.sealed, row.id).decode()
        except CredentialUnreadable as error:
            words = "the credential was sealed for another gateway key: bring it again"
            raise CredentialUnavailable("credential_unreadable", words) from error
