"""The vault: who gets which secret, and how soon a replaced or removed one is gone."""

from collections.abc import AsyncIterator

import pytest

from service.domain.credentials import Purpose, Use
from service.domain.models import Dialect, ModelSpec
from service.gateway import credentials as vault_module
from service.gateway.credentials import Vault
from service.gateway.ports import CredentialUnavailable
from service.store import credentials, models
from service.store.database import Database
from service.store.rows_models import CredentialRow, ModelRow
from service.store.sealed_box import OpeningKey
from tests.integration.store.seeds import seed

KEY = OpeningKey(bytes(range(32)))
SPEC = ModelSpec(name="a/b", provider="acme", upstream_id="b", dialect=Dialect.OPENAI, base_url="https://a.example")


class Rig:
    def __init__(self, db: Database, model: ModelRow) -> None:
        self.db, self.model = db, model
        self.vault = Vault(db, KEY)

    async def put(self, secret: str, purpose: Purpose = Purpose.MODEL) -> CredentialRow:
        async with self.db.transaction() as tx:
            row = await credentials.put(tx, "model", self.model.project_id, self.model.id, purpose, secret)
        assert row is not None
        return row


@pytest.fixture
async def rig(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(vault_module, "FRESH_S", 0.0)
    db = Database(database_url)
    async with db.transaction() as tx:
        seeds = await seed(tx, "p")
        model, _ = await models.create(tx, seeds.project.id, SPEC, private=False)
    made = Rig(db, model)
    await made.vault.register()
    yield made
    await db.close()


async def refused(rig: Rig, project: str, credential: str, use: Use) -> str:
    with pytest.raises(CredentialUnavailable) as error:
        await rig.vault.secret(project, credential, use)
    assert "sk-" not in str(error.value)
    return error.value.type


async def test_a_secret_is_its_projects_and_for_its_purpose(rig: Rig) -> None:
    row = await rig.put("sk-judge", Purpose.JUDGE)
    mine = rig.model.project_id
    assert await rig.vault.secret(mine, row.id, Use.JUDGE) == "sk-judge"
    assert await refused(rig, mine, row.id, Use.AGENT) == "credential_purpose"
    assert await refused(rig, mine, row.id, Use.CLIENT) == "credential_purpose"
    assert await refused(rig, "prj_other", row.id, Use.JUDGE) == "credential_missing"


async def test_a_replaced_or_removed_one_is_gone(rig: Rig) -> None:
    mine = rig.model.project_id
    row = await rig.put("sk-old")
    assert await rig.vault.secret(mine, row.id, Use.AGENT) == "sk-old"
    assert (await rig.put("sk-new")).id == row.id
    assert await rig.vault.secret(mine, row.id, Use.AGENT) == "sk-new"
    async with rig.db.transaction() as tx:
        await credentials.remove(tx, "model", mine, rig.model.id)
    assert await refused(rig, mine, row.id, Use.AGENT) == "credential_missing"


async def test_another_key_cannot_read_it(rig: Rig) -> None:
    row = await rig.put("sk-old")
    rig.vault = Vault(rig.db, OpeningKey(bytes(32)))
    assert await refused(rig, rig.model.project_id, row.id, Use.AGENT) == "credential_unreadable"
