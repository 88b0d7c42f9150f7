"""The gateway process behind listeners planted in sandboxes: what is reached from inside, who dies without whom."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.domain.grants import Grant, GrantedModel
from service.domain.models import Dialect, ModelSpec
from service.domain.run_states import AttemptState
from service.gateway.auth import token_hash
from service.models.scripted.server import Scripted
from service.sandboxes.contract import Sandbox
from service.store import attempts, claims, model_requests
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.request_bodies import read_body
from service.store.rows_requests import ModelRequestRow
from service.supervisor.postgres import EmbeddedPostgres
from service.testing.sandbox_bench import Bench, python
from service.workers.gateway_link import GatewayLink
from tests.fixtures.postgres import new_database, open_directory
from tests.integration.store.seeds import add_host, add_run, seed

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(400)]
SECRET = "sk-scripted-slow"
ASK = """
import json, sys, urllib.error, urllib.request
body = {"model": "claude-1", "max_tokens": 50, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
request = urllib.request.Request("http://127.0.0.1/v1/messages", json.dumps(body).encode(), {"x-api-key": sys.argv[1]})
try:
    with urllib.request.urlopen(request, timeout=40) as answer:
        print(answer.status, "message_stop" in answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, json.loads(error.read())["error"]["message"])
except Exception as error:
    print("lost", type(error).__name__)
"""
LOOK_AROUND = """
import glob, os
print(dict(os.environ), open("/proc/mounts").read())
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        print(open(path, "rb").read())
    except OSError as error:
        print(error)
"""


@dataclass
class House:
    """A data directory with a gateway process, a database, a provider, and our end of the control socket."""

    data: Path
    db: Database
    provider: Scripted
    url: str
    process: asyncio.subprocess.Process | None = None
    seen: int = 0
    starts: int = 0
    seeds: Any = None
    host: Any = None
    links: list[tuple[GatewayLink, "asyncio.Task[None]"]] = field(default_factory=list[Any])

    async def start_gateway(self) -> None:
        env = {**os.environ, "WORKSTEAD_DATA_DIR": str(self.data), "WORKSTEAD_DATABASE_URL": self.url,
               "WORKSTEAD_WORKER__HOST_ID": "h1", "WORKSTEAD_MODELS__CREDENTIALS_FILE": str(self.data / "keys.toml")}  # fmt: skip
        with (self.data / "gateway.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "service", "gateway", env=env, stdout=log, stderr=log
            )
        self.starts += 1
        for _ in range(1200):
            if self.log().count("gateway_up") == self.starts:
                return
            await asyncio.sleep(0.1)
        raise TimeoutError(self.log())

    async def kill_gateway(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    def link(self) -> GatewayLink:
        made = GatewayLink(self.data / "gateway")
        self.links.append((made, asyncio.create_task(made.run())))
        return made

    async def lose_links(self) -> None:
        """As the death of a worker: its connections are closed and nobody says anything."""
        links, self.links = self.links, []
        for _, task in links:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def grant(self, token: str, **changes: Any) -> Grant:
        async with self.db.transaction() as tx:
            if self.seeds is None:
                self.seeds = await seed(tx, "default-ish")
                self.host = await add_host(tx, "h1", "e1", slots=64)
            await add_run(tx, self.seeds)
        async with self.db.transaction() as tx:
            (claimed,) = await claims.claim(tx, self.host, 1)
            attempt = await attempts.advance(tx, claimed, AttemptState.BOUND)
        spec = ModelSpec(
            name="anthropic/claude", provider="anthropic", upstream_id="claude-1", dialect=Dialect.ANTHROPIC,
            base_url=self.provider.url,
        )  # fmt: skip
        fields: dict[str, Any] = {
            "run_id": attempt.run_id, "attempt": attempt.n, "fence": attempt.fence, "project_id": self.seeds.project.id,
            "token_hashes": [token_hash(token)], "models": [GrantedModel(id="mdl_1", spec=spec, private=True)],
            "seconds_left": 600,
        }  # fmt: skip
        return Grant.model_validate(fields | changes)

    async def rows(self, grant: Grant, count: int) -> list[ModelRequestRow]:
        for _ in range(400):
            async with self.db.reading() as tx:
                found = await model_requests.list_for_run(tx, grant.run_id, 0, 100)
            if len(found) >= count and all(row.state == "finished" for row in found):
                return found
            await asyncio.sleep(0.05)
        raise TimeoutError(self.log())

    async def asked(self) -> None:
        """Return when the provider has got one request more."""
        for _ in range(400):
            if len(self.provider.requests()) > self.seen:
                self.seen = len(self.provider.requests())
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(self.log())

    def log(self) -> str:
        return (self.data / "gateway.log").read_text()


@pytest_asyncio.fixture(loop_scope="session")
async def house(postgres_server: EmbeddedPostgres, database_template: str) -> AsyncGenerator[House]:
    with open_directory() as data, new_database(postgres_server, database_template) as url, Scripted() as provider:
        keys = data / "keys.toml"
        keys.write_text(f'[model]\nanthropic = {{key = "{SECRET}", base_url = "{provider.url}", projects = ["*"]}}\n')
        keys.chmod(0o600)
        BlobStore(data / "blobs").store_bytes(b"a blob of root's")
        made = House(data, Database(url), provider, url)
        await made.start_gateway()
        try:
            yield made
        finally:
            await made.lose_links()
            if made.process is not None and made.process.returncode is None:
                made.process.terminate()
                await asyncio.wait_for(made.process.wait(), 20)
            await made.db.close()


@asynccontextmanager
async def agent(house: House, bench: Bench, token: str, **changes: Any) -> AsyncGenerator[tuple[Sandbox, Grant]]:
    grant = await house.grant(token, **changes)
    async with bench.sandbox() as sandbox:
        yield sandbox, grant


def planting(sandbox: Sandbox, ports: list[int]) -> Callable[[int], Any]:
    async def plant(port: int) -> socket.socket:
        ports.append(port)
        return await sandbox.plant(port)

    return plant


@pytest.mark.fault(35, 40)
async def test_two_sandboxes_each_with_its_own_token_and_no_key_anywhere(house: House, bench: Bench) -> None:
    async with agent(house, bench, "token-one") as (one, grant), agent(house, bench, "token-two") as (two, other):
        link = house.link()
        await link.open(grant, one.plant)
        await link.open(other, two.plant)
        assert await python(one, ASK, "token-one") == "200 True\n"
        assert (await python(one, ASK, "token-two")).startswith("403 ")
        assert await python(two, ASK, "token-two") == "200 True\n"
        (row,) = await house.rows(grant, 1)
        assert (row.status, row.usage_known) == (200, True)
        seen = await python(one, LOOK_AROUND)
        assert "PATH" in seen
        assert SECRET not in seen + json.dumps(one.attestation, default=str)
        assert SECRET not in house.log()
        # Bodies were stored by the gateway's own user, beside root's.
        assert row.request_blob is not None
        assert b'"claude-1"' in read_body(BlobStore(house.data / "blobs"), row.request_blob).data
        await link.close(grant.run_id, grant.attempt)
        assert (await python(one, ASK, "token-one")).startswith("401 ")


@pytest.mark.fault(56)
async def test_a_gateway_that_is_killed_is_replaced_and_nothing_is_lost(house: House, bench: Bench) -> None:
    ports: list[int] = []
    async with agent(house, bench, "token-one", budget={"max_requests": 3}) as (sandbox, grant):
        link = house.link()
        await link.open(grant, planting(sandbox, ports))
        asking = asyncio.create_task(python(sandbox, ASK, "token-one"))
        await house.asked()
        await house.kill_gateway()
        assert (await asking).startswith(("lost", "200 False"))
        assert (await python(sandbox, ASK, "token-one")).startswith("lost"), "no way around it"
        await house.start_gateway()
        (dead,) = await house.rows(grant, 1)
        assert (dead.error, dead.usage_known, dead.status) == ("gateway_died", False, None)
        for _ in range(200):
            if len(ports) == 2:
                break
            await asyncio.sleep(0.05)
        assert await python(sandbox, ASK, "token-one") == "200 True\n"
        assert ports == [80, 80]
        assert [row.n for row in await house.rows(grant, 2)] == [1, 2]
        assert (await link.state(grant.run_id, grant.attempt)).requests == 1
        assert await python(sandbox, ASK, "token-one") == "200 True\n"
        assert (await python(sandbox, ASK, "token-one")).startswith("400 "), "the dead gateway's request counts"


async def test_a_call_outlives_the_worker(house: House, bench: Bench) -> None:
    ports: list[int] = []
    async with agent(house, bench, "token-one") as (sandbox, grant):
        await house.link().open(grant, planting(sandbox, ports))
        asking = asyncio.create_task(python(sandbox, ASK, "token-one"))
        await house.asked()
        await house.lose_links()
        link = house.link()
        await link.open(grant.model_copy(update={"fence": grant.fence + 1}), planting(sandbox, ports))
        assert await asking == "200 True\n"
        assert ports == [80]
        (row,) = await house.rows(grant, 1)
        assert (row.error, row.usage_known) == (None, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="there is nothing to give up")
async def test_it_has_given_up_root(house: House, bench: Bench) -> None:
    link = house.link()
    async with agent(house, bench, "token-one") as (sandbox, grant):
        await link.open(grant, sandbox.plant)
        assert house.process is not None
        proc = Path(f"/proc/{house.process.pid}")
        status, files = await asyncio.to_thread(_of, proc)
        told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert "0" not in told["Uid"].split()
        assert "0" not in told["Gid"].split() + told["Groups"].split()
        assert int(told["CapEff"], 16) == int(told["CapPrm"], 16) == 0
        assert not [name for name in files if "docker" in name]


def _of(proc: Path) -> tuple[str, list[str]]:
    return (proc / "status").read_text(), [os.readlink(one) for one in (proc / "fd").iterdir()]  # noqa: PTH115
