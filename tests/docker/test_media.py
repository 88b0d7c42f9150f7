"""``ws-media`` as an agent's shell has it: in a sandbox without a network and without a Python of its own."""

import io
import wave
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from PIL import Image
from sqlalchemy import update

from service.domain.agents import AgentSettings
from service.domain.grants import GrantedService
from service.domain.services import ServiceSpec
from service.sandboxes.contract import FileSource, Sandbox
from service.sandboxes.docker.backend import DockerBackend
from service.scaffolds.contract import Plan
from service.scaffolds.environment import base_environment
from service.scaffolds.media.placing import equipped
from service.store import runs, service_calls, services
from service.store.tables_models import services as table
from service.testing.sandbox_bench import Bench
from tests.docker.test_gateway import House, house
from tests.docker.test_kits import kit
from tests.unit.scaffolds.build import CONTEXT

__all__ = ["house", "kit"]
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(400)]
NAMES = ("images", "speech", "transcription")
CONTEXT_OF_MEDIA = replace(CONTEXT, settings=AgentSettings(services=list(NAMES)))


async def granted(house: House, project_id: str) -> list[GrantedService]:
    found: list[GrantedService] = []
    async with house.db.transaction() as tx:
        for name in NAMES:
            spec = ServiceSpec.model_validate(
                {"name": name, "base_url": f"{house.provider.url}/v1", "allow": [{"methods": ["POST"]}],
                 "credential": {"place": "none"}, "headers": {"api-key": "sk-scripted-media"},
                 "price_per_call_usd": "0.02"}
            )  # fmt: skip
            row, _ = await services.create(tx, project_id, spec, private=True)
            await tx.execute(update(table).where(table.c.id == row.id).values(private=True))
            found.append(GrantedService(id=row.id, name=name))
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def sandbox(bench: Bench, backend: DockerBackend, kit: str) -> AsyncIterator[Sandbox]:
    plain = await backend.resolve_image("root")
    made = await backend.make(replace(bench.spec, environment=plain, kit=kit))
    yield made
    await made.destroy()


async def test_ws_media_in_a_sandbox_without_python(house: House, sandbox: Sandbox) -> None:
    plan = equipped(Plan(["agent"]), CONTEXT_OF_MEDIA)
    await sandbox.write_files([FileSource(w.path, data=w.data, mode=w.mode) for w in plan.written])
    grant = await house.grant("token-of-media")
    link = house.link()
    await link.open(grant.model_copy(update={"services": await granted(house, grant.project_id)}), sandbox.plant)
    env = base_environment(CONTEXT_OF_MEDIA)

    async def shell(line: str, token: str = "token-of-media") -> tuple[int | None, str]:
        # The agent's program, here a shell, keeps what looks like a secret from the commands that it starts.
        hiding = 'env -i PATH="$PATH" sh -c "$1"; exit $?'
        done = await sandbox.exec(
            ["sh", "-c", hiding, "agent", line], env={**env, "WORKSTEAD_RUN_TOKEN": token}, timeout_s=60
        )
        return done.code, (done.stdout + done.stderr).decode()

    assert (await shell("command -v python3")) == (127, "")
    assert (await shell("ws-media image 'a red barn' --size 32x16 -o output/new/barn.png"))[0] == 0
    picture = Image.open(io.BytesIO(await sandbox.read_file("output/new/barn.png")))
    assert (picture.format, picture.size) == ("PNG", (32, 16))
    assert await shell("echo Guten Tag | ws-media speech - -o hi.wav") == (0, "wrote wav to hi.wav\n")
    with wave.open(io.BytesIO(await sandbox.read_file("hi.wav"))) as sound:
        assert sound.getnframes() == 10 * 160
    assert await shell("ws-media transcribe hi.wav") == (0, "Guten Tag\n\n")
    code, said = await shell("ws-media image 'a [refuse]' -o no.png; echo $?; ls no.png")
    assert said.startswith("1\n")
    assert "ws-media: service_refused: status 400: " in said
    code, said = await shell("ws-media image barn -o no.png", token="of-nobody")
    assert (code, "status 401" in said) == (1, True)
    code, said = await shell("ws-media video barn -o no.mp4")
    assert (code, "unknown_service" in said) == (1, True)
    await link.close(grant.run_id, grant.attempt)
    async with house.db.reading() as tx:
        calls = await service_calls.list_for_run(tx, grant.run_id, 0, 10)
        row = await runs.load(tx, grant.run_id)
    assert [c.service for c in calls] == ["images", "speech", "transcription", "images"]
    assert (row.service_calls, str(row.service_cost_usd)) == (4, "0.0800000000")
