"""A provider's key is nowhere in what runs leave: events, logs, bodies, artifacts, files, database, engine (fault 35, 36).

Two agents work at once, are told their keys by a provider that echoes them, print all that they can see, and try the
other one's token.
"""

import base64
import gzip
import json
import os
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import quote

import psycopg
import pytest
import zstandard
from psycopg import sql

from service.models.scripted.scenario import Action, Fault, FaultKind, Scenario
from service.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.postgres import plain_url
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, LabModel

LOOK = (
    "env | sort; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; mount; ls -la / /run /opt /workspace; "
    "env > output/env.txt; env | gzip > output/env.gz"
)
PROGRAMS = {"claude-code": "anthropic", "codex": "openai"}


def spellings(secret: str) -> set[bytes]:
    """The secret as it may stand in a file: plain, escaped, encoded; base64 at each of its three alignments."""
    raw = secret.encode()
    found = {raw, quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode(), raw.hex().encode(), raw[::-1]}
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw)
        start = -(-before * 4 // 3)
        found.add(coded[start + 1 : -4])
    return found


def opened(data: bytes, depth: int = 3) -> Iterator[bytes]:
    """The bytes, and what they hold if they are packed."""
    yield data
    if depth == 0:
        return
    for unpack in (gzip.decompress, zlib.decompress, _zstd):
        try:
            inner = unpack(data)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError):
            continue
        yield from opened(inner, depth - 1)


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def places(secret: str, pieces: dict[str, bytes]) -> list[str]:
    needles = spellings(secret)
    return sorted({name for name, data in pieces.items() for part in opened(data) if any(n in part for n in needles)})


@pytest.fixture(scope="module")
def since() -> float:
    """When there were no keys yet: older files cannot hold one."""
    return time.time() - 1


@pytest.fixture(scope="module")
def ended(there: Lab, since: float) -> dict[str, tuple[LabModel, Record]]:
    made = make_task(there.stack, limits={"memory_bytes": 1 << 30, "disk_bytes": 256 << 20}, graders=[])
    scenario = Scenario(
        name="echo-and-look",
        steps=[Action(run=LOOK)],
        faults=[Fault(kind=FaultKind.ECHO_KEY, turn=None, status=200)],
        piece_chars=4096,  # a key cut in pieces by the provider itself is not recognised (docs/decisions/0014)
    )
    runs: dict[str, tuple[LabModel, str]] = {}
    for program, dialect in PROGRAMS.items():
        model = there.model(dialect, scenario)
        runs[program] = model, submit(there.stack, made, there.agent(f"{program}@latest", model))
    return {name: (model, record(there.stack, run, 300)) for name, (model, run) in runs.items()}


def everything(there: Lab, since: float) -> dict[str, bytes]:
    """What has come into the data directory since then, and all of the database and the engine, by a name."""
    stack = there.stack
    skipped = ("pg/", "pg-bin")
    # Warm sandboxes come and go meanwhile; `rglob` would stumble over a folder that has just gone.
    files = [Path(folder) / name for folder, _, names in os.walk(stack.data_dir) for name in names]
    names = {str(p.relative_to(stack.data_dir)): p for p in files}
    found = {name: _read(path, since) for name, path in names.items() if not name.startswith(skipped)}
    with psycopg.connect(plain_url(EmbeddedPostgres(stack.data_dir).url)) as database:
        query = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'dbos')"
        for schema, table in database.execute(query).fetchall():
            whole = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table))
            rows = cast("list[tuple[str]]", database.execute(whole).fetchall())
            found[f"table {table}"] = "\n".join(row[0] for row in rows).encode()
    ids = subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, timeout=30, check=True).stdout.split()
    if ids:
        inspected = subprocess.run(["docker", "inspect", *ids], capture_output=True, timeout=60, check=False)
        found["docker inspect"] = inspected.stdout
    return found


def _read(path: Path, since: float) -> bytes:
    try:
        # Nobody but the kernel sets the time of a change.
        looked_at = path.is_file() and not path.is_symlink() and path.stat().st_ctime >= since
        return path.read_bytes() if looked_at else b""
    except FileNotFoundError:
        return b""


@pytest.mark.fault(35, 36)
@pytest.mark.timeout(500)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_key_is_in_anything_that_runs_leave(
    program: str, there: Lab, since: float, ended: dict[str, tuple[LabModel, Record]]
) -> None:
    model, seen = ended[program]
    assert seen.run["ended_because"] == "completed", (seen.run, seen.output(1), seen.output(1, "stderr"))
    assert any(exchange.credential == model.key for exchange in there.provider.requests())
    pieces = everything(there, since)
    assert places("WORKSTEAD_RUN_TOKEN", pieces), "the search finds what is there"
    assert places(model.key, pieces) == []


@pytest.mark.timeout(500)
def test_the_search_finds_each_spelling() -> None:
    secret = "sk-scripted-x.0123456789abcdef/+=é"
    raw = secret.encode()
    hidden = [
        raw, b"xx" + base64.b64encode(b"a" + raw + b"tail"), base64.b64encode(b"ab" + raw + b"tail"), gzip.compress(raw),
        zstandard.compress(gzip.compress(b"--" + raw)), quote(secret, safe="").encode(), json.dumps({"k": secret}).encode(),
    ]  # fmt: skip
    for data in hidden:
        assert places(secret, {"it": data}) == ["it"], data


@pytest.mark.fault(35)
@pytest.mark.timeout(500)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_shell_sees_the_run_token_and_no_other_secret(
    program: str, ended: dict[str, tuple[LabModel, Record]]
) -> None:
    model, seen = ended[program]
    shown = seen.output(1)
    assert "wsr_" in shown
    assert model.key not in shown
