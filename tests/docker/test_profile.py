"""Profile and attestation on the engine: what was asked for is what runs, or nothing runs."""

import json
from typing import Any

import pytest

from service.sandboxes.contract import SandboxRefused
from service.sandboxes.docker import maker
from service.sandboxes.docker.attestation import attest
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.profile import create_body
from service.testing.sandbox_bench import ENV, SMALL
from service.testing.sandbox_suite import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.fault(3)
async def test_attestation_compares_at_least_20_fields_and_is_kept(bench: Bench, backend: DockerBackend) -> None:
    async with bench.sandbox() as sandbox:
        kept = sandbox.attestation
        assert kept["matched"] >= 20
        assert kept["fields"]["ReadonlyRootfs"] is True
        assert kept["fields"]["CapDrop"] == ["ALL"]
        assert kept["fields"]["NetworkMode"] == "none"
        assert kept["fields"]["Memory"] == SMALL.memory_bytes
        assert kept["soft_quota"] is False
        json.dumps(kept)
        live = await backend.engine.inspect(f"{backend.deployment}-{sandbox.id}")
        fields = {
            name: live["HostConfig"].get(name) for name in ("Runtime", "Privileged", "IpcMode", "PidsLimit", "Init")
        }
        assert fields == {name: kept["fields"][name] for name in fields}
        assert (await sandbox.exec(["cat", "/etc/hostname"], env=ENV)).stdout.strip() == b"sandbox"


DEVIATIONS: dict[str, dict[str, Any]] = {
    "privileged": {"Privileged": True},
    "writable root": {"ReadonlyRootfs": False},
    "capability": {"CapAdd": ["SYS_ADMIN"]},
    "capabilities kept": {"CapDrop": []},
    "host process namespace": {"PidMode": "host"},
    "host network": {"NetworkMode": "host", "Sysctls": {}},
    "host ipc": {"IpcMode": "host"},
    "bind": {"Binds": ["/etc:/hostetc:ro"]},
    "engine socket": {"Binds": ["/var/run/docker.sock:/var/run/docker.sock"]},
    "device": {"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/extra", "CgroupPermissions": "rwm"}]},
    "unconfined": {"SecurityOpt": ["seccomp=unconfined"]},
    "no limit on processes": {"PidsLimit": 0},
    "more memory": {"Memory": 1 << 30, "MemorySwap": 1 << 30},
    "extra host": {"ExtraHosts": ["a:1.2.3.4"]},
    "other group": {"GroupAdd": ["0"]},
    "extra mount": {"Tmpfs": {"/extra": "rw"}},
}


@pytest.mark.fault(2)
@pytest.mark.parametrize("change", DEVIATIONS.values(), ids=DEVIATIONS.keys())
async def test_a_container_that_differs_never_starts(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """The engine is asked for something else than the attestation then compares with."""

    def also_changed(*args: Any) -> dict[str, Any]:
        asked = create_body(*args)
        original.append(json.loads(json.dumps(asked)))
        asked["HostConfig"].update(change)
        return asked

    def against_original(_body: Any, inspected: Any) -> dict[str, Any]:
        assert not inspected["State"]["Running"]
        return attest(original[0], inspected)

    original: list[dict[str, Any]] = []
    monkeypatch.setattr(maker, "create_body", also_changed)
    monkeypatch.setattr(maker, "attest", against_original)
    before = await backend.list_ids()
    with pytest.raises(SandboxRefused, match=next(iter(change))):
        await backend.make(bench.spec)
    assert await backend.list_ids() == before
