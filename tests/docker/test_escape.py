"""Sixty ways out, tried from inside; a flag file on the host stays unread (catalogue 5)."""

import json
import uuid
from pathlib import Path

import pytest

from service.sandboxes.docker.backend import RUNTIMES, DockerBackend
from service.testing.sandbox_bench import python
from tests.docker.conftest import bench_on

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROBES = (Path(__file__).parent / "escape_probes.py").read_text(encoding="utf-8")


@pytest.mark.fault(5)
@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_every_way_out_is_refused(backend: DockerBackend, tmp_path: Path, runtime: str) -> None:
    secret = uuid.uuid4().hex
    flag = tmp_path / "flag"
    flag.write_text(secret, encoding="utf-8")
    flag.chmod(0o644)
    bench = await bench_on(backend, runtime)
    async with bench.sandbox() as sandbox:
        result = json.loads(await python(sandbox, PROBES, str(flag)))
    assert len(result["refused"]) + len(result["harmless"]) >= 60, len(result["refused"])
    assert result["succeeded"] == []
    assert secret not in json.dumps(result)
    assert flag.read_text(encoding="utf-8") == secret
