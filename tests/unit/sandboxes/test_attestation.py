"""Each field that the attestation compares makes it fail on its own."""

import copy
import json
from typing import Any

import pytest

from service.domain.tasks import canonical_digest
from service.sandboxes.contract import SandboxRefused, SandboxSpec
from service.sandboxes.docker.attestation import attest
from service.sandboxes.docker.facts import HostFacts, ImageFacts, Placement
from service.sandboxes.docker.profile import create_body
from service.sandboxes.docker.seccomp import SECCOMP

IMAGE = "sha256:" + "a" * 64
PLACE = Placement("dep", "sbx_1", "/data/control", "dep-sbx_1", ("/usr/bin/python3",), kit_volume="dep-kit")
BODY = create_body(
    SandboxSpec(IMAGE),
    HostFacts(2, "E"),
    ImageFacts(IMAGE, volumes=("/data",), label_names=("org.workstead.x",)),
    PLACE,
)


def as_inspected() -> dict[str, Any]:
    """Return what an engine answers for a container made exactly as asked."""
    body = copy.deepcopy(BODY)
    host = body.pop("HostConfig")
    image = body.pop("Image")
    found = [
        {"Type": "volume", "Name": "dep-sbx_1", "Source": "/v/_data", "Destination": "/workspace", "RW": True},
        {"Type": "bind", "Source": "/data/control", "Destination": "/run/workstead", "RW": False},
        {"Type": "volume", "Name": "dep-kit", "Source": "/v/_data", "Destination": "/opt/kit", "RW": False},
    ]
    host["MaskedPaths"] = [
        "/proc/acpi",
        "/proc/kcore",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/sched_debug",
        "/sys/firmware",
    ]
    host["ReadonlyPaths"] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
    body["Volumes"] = {"/data": {}}
    body["Labels"]["image.own"] = "kept"
    networks: dict[str, Any] = {"Networks": {}}
    return {"Image": image, "Config": body, "HostConfig": host, "Mounts": found, "NetworkSettings": networks}


@pytest.mark.fault(3)
def test_what_was_asked_for_is_attested() -> None:
    kept = attest(BODY, as_inspected())
    assert kept["matched"] >= 40
    profile = "seccomp=" + canonical_digest(json.loads(SECCOMP["default"]))
    assert kept["fields"]["SecurityOpt"] == ["no-new-privileges:true", profile]


def test_absent_and_empty_are_the_same() -> None:
    inspected = as_inspected()
    inspected["HostConfig"]["Binds"] = None
    inspected["HostConfig"]["CapAdd"] = None
    inspected["HostConfig"]["VolumesFrom"] = []
    attest(BODY, inspected)


HOST_CHANGES: dict[str, Any] = {
    "Runtime": "other", "NetworkMode": "host", "IpcMode": "host", "PidMode": "host", "UTSMode": "host", "UsernsMode": "host",
    "Privileged": True, "PublishAllPorts": True, "CapDrop": [], "CapAdd": ["SYS_ADMIN"], "SecurityOpt": [],
    "ReadonlyRootfs": False, "Init": False, "AutoRemove": True, "RestartPolicy": {"Name": "always"},
    "LogConfig": {"Type": "json-file"}, "Tmpfs": {"/tmp": "rw"}, "ShmSize": 1, "Memory": 0, "MemorySwap": -1,
    "OomKillDisable": True, "OomScoreAdj": 0, "NanoCpus": 0, "CpuShares": 0, "PidsLimit": None, "Sysctls": {},
    "Devices": [{"PathOnHost": "/dev/kvm"}], "Binds": ["/:/host"], "DeviceRequests": [{}], "DeviceCgroupRules": ["a"],
    "VolumesFrom": ["x"], "GroupAdd": ["0"], "ExtraHosts": ["a:b"], "Links": ["x"], "PortBindings": {"80/tcp": []},
    "Dns": ["1.1.1.1"], "DnsSearch": ["x"], "Cgroup": "x", "Ulimits": [], "MaskedPaths": [], "ReadonlyPaths": [],
    "CgroupnsMode": "host",
}  # fmt: skip
CONFIG_CHANGES: dict[str, Any] = {
    "User": "0", "WorkingDir": "/", "Entrypoint": ["/bin/sh"], "Cmd": ["x"], "Env": ["LD_PRELOAD=/x"], "Healthcheck": None,
    "StopSignal": "SIGTERM", "Tty": True, "OpenStdin": True, "Hostname": "x", "Volumes": {"/more": {}},
    "Labels": {"org.workstead.sandbox": "other"},
}  # fmt: skip


@pytest.mark.fault(2)
@pytest.mark.parametrize("name", HOST_CHANGES)
def test_a_differing_host_field_is_refused(name: str) -> None:
    inspected = as_inspected()
    inspected["HostConfig"][name] = HOST_CHANGES[name]
    with pytest.raises(SandboxRefused) as caught:
        attest(BODY, inspected)
    assert caught.value.fields["fields"] == [name]


@pytest.mark.fault(2)
@pytest.mark.parametrize("name", CONFIG_CHANGES)
def test_a_differing_config_field_is_refused(name: str) -> None:
    inspected = as_inspected()
    inspected["Config"][name] = CONFIG_CHANGES[name]
    with pytest.raises(SandboxRefused) as caught:
        attest(BODY, inspected)
    assert caught.value.fields["fields"] == [name]


MOUNTS: dict[str, dict[str, Any]] = {
    "more": {"Type": "bind", "Source": "/etc", "Destination": "/etc2", "RW": False},
    "anonymous": {"Type": "volume", "Name": "f00", "Destination": "/data", "RW": True},
}


@pytest.mark.parametrize("mount", MOUNTS.values(), ids=MOUNTS.keys())
def test_a_mount_more_is_refused(mount: dict[str, Any]) -> None:
    inspected = as_inspected()
    inspected["Mounts"].append(mount)
    with pytest.raises(SandboxRefused, match="Mounts"):
        attest(BODY, inspected)


def test_a_writable_control_directory_another_image_or_network_is_refused() -> None:
    for change in ("mount", "image", "network"):
        inspected = as_inspected()
        if change == "mount":
            inspected["Mounts"][1]["RW"] = True
        elif change == "image":
            inspected["Image"] = "sha256:" + "b" * 64
        else:
            inspected["NetworkSettings"]["Networks"]["bridge"] = {}
        with pytest.raises(SandboxRefused):
            attest(BODY, inspected)


def test_a_container_with_a_network_of_the_engine_is_refused() -> None:
    for disabled, networks in ((None, ()), (None, ("none",)), (True, ("none",)), (True, ("bridge",))):
        found = as_inspected()
        found["Config"]["NetworkDisabled"] = disabled
        found["NetworkSettings"]["Networks"] = dict.fromkeys(networks)
        with pytest.raises(SandboxRefused, match="Network"):
            attest(BODY, found)
    attest(BODY, as_inspected())
