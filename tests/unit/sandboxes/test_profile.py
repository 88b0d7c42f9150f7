"""The create body: closed, and inside its own limits whatever the spec."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.limits import GIB, MIB, Limits
from service.sandboxes.contract import Confinement, SandboxSpec
from service.sandboxes.docker.facts import HostFacts, ImageFacts, Placement
from service.sandboxes.docker.profile import create_body, pids_limit, shm_bytes
from service.sandboxes.docker.seccomp import SECCOMP

HOST = HostFacts(cgroup_version=1, engine_id="E")
IMAGE = ImageFacts("sha256:" + "a" * 64)
PLACE = Placement("dep", "sbx_1", "/data/control", "dep-sbx_1", ("/usr/bin/python3", "-I", "-S", "/p.py"))


def body(
    limits: Limits | None = None, image: ImageFacts = IMAGE, host: HostFacts = HOST, runtime: str = "runc"
) -> dict[str, Any]:
    return create_body(SandboxSpec(IMAGE.id, limits=limits or Limits(), runtime=runtime), host, image, PLACE)


def host_config(made: dict[str, Any]) -> dict[str, Any]:
    return made["HostConfig"]


@given(st.integers(64 * MIB, 64 * GIB), st.integers(MIB, 8 * GIB), st.integers(0, 16))
def test_scratch_and_shm_stay_below_half_of_memory(memory: int, shm: int, volumes: int) -> None:
    limits = Limits(memory_bytes=memory, shm_bytes=shm)
    image = ImageFacts(IMAGE.id, volumes=tuple(f"/v{i}" for i in range(volumes)))
    tmpfs = host_config(body(limits, image))["Tmpfs"]
    sizes = [int(str(o).partition("size=")[2].partition(",")[0]) for o in tmpfs.values()]
    assert sum(sizes) + shm_bytes(limits) <= memory // 2
    assert all(size >= 4096 for size in sizes)


def test_image_environment_is_emptied_and_ours_wins() -> None:
    image = ImageFacts(IMAGE.id, env_names=("PATH", "LD_PRELOAD", "NODE_OPTIONS"))
    made = body(image=image)["Env"]
    assert "NODE_OPTIONS=" in made
    assert "LD_PRELOAD=" in made
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in made
    assert len([e for e in made if str(e).startswith("PATH=")]) == 1


def test_spoofed_labels_are_emptied_and_ours_are_last() -> None:
    image = ImageFacts(IMAGE.id, label_names=("org.workstead.sandbox", "org.workstead.warm", "other.label"))
    assert body(image=image)["Labels"] == {
        "org.workstead.warm": "",
        "org.workstead.deployment": "dep",
        "org.workstead.sandbox": "sbx_1",
    }


@pytest.mark.fault(103)
def test_every_volume_of_the_image_is_covered() -> None:
    image = ImageFacts(IMAGE.id, volumes=("/data", "/workspace", "/tmp"))
    config = host_config(body(image=image))
    tmpfs, mounts = config["Tmpfs"], config["Mounts"]
    assert "/data" in tmpfs
    assert "/workspace" not in tmpfs
    assert [m["Target"] for m in mounts] == ["/workspace", "/run/workstead"]


def test_cgroup_v1_only_options_are_dropped_on_v2() -> None:
    v2 = host_config(body(host=HostFacts(2, "E")))
    assert "MemorySwappiness" not in v2
    assert v2["CgroupnsMode"] == "private"
    assert "MemorySwappiness" in host_config(body())


def test_gvisor_has_room_for_its_own_tasks() -> None:
    spec = SandboxSpec(IMAGE.id, limits=Limits(pids=64), runtime="runsc-planted")
    assert pids_limit(spec) > 512
    assert pids_limit(SandboxSpec(IMAGE.id, limits=Limits(pids=64))) == 64


def plainly_allowed(confinement: Confinement) -> set[str]:
    """Calls that are allowed whatever their arguments."""
    rules = json.loads(SECCOMP[confinement])["syscalls"]
    return {n for r in rules if r["action"] == "SCMP_ACT_ALLOW" and not r.get("args") for n in r["names"]}


@pytest.mark.fault(9)
def test_the_seccomp_profile_is_an_allow_list_without_the_dangerous() -> None:
    refused = {
        "io_uring_setup", "bpf", "userfaultfd", "perf_event_open", "keyctl", "add_key", "request_key", "ptrace", "mount",
        "process_vm_readv", "unshare", "setns", "clone", "clone3", "socket", "open_by_handle_at", "kexec_load", "reboot",
        "init_module", "finit_module", "pivot_root", "swapon", "iopl", "syslog", "settimeofday",
    }  # fmt: skip
    for confinement, profile in SECCOMP.items():
        assert json.loads(profile)["defaultAction"] == "SCMP_ACT_ERRNO"
        plain = plainly_allowed(confinement)
        assert not plain & refused
        assert {"mknodat", "memfd_create", "futex", "execve"} <= plain
    assert "chroot" not in plainly_allowed("default")


@pytest.mark.fault(9)
def test_a_desktop_is_given_namespaces_and_nothing_else() -> None:
    assert plainly_allowed("desktop") - plainly_allowed("default") == {"chroot"}
    assert plainly_allowed("default") - plainly_allowed("desktop") == {"setsockopt"}
    rules = [r for r in json.loads(SECCOMP["desktop"])["syscalls"] if r.get("args")]
    families = {r["args"][0]["value"] for r in rules if r["names"] == ["socket"]}
    assert families == {1, 2, 10}, "AF_UNIX, AF_INET and AF_INET6: no AF_NETLINK for who may configure a network"
    users, processes, network = 1 << 28, 1 << 29, 1 << 30
    others = (1 << 7) | (1 << 17) | (1 << 25) | (1 << 26) | (1 << 27)
    (clone,) = [r["args"] for r in rules if r["names"] == ["clone"]]
    assert clone[0]["op"] == "SCMP_CMP_MASKED_EQ"
    assert clone[0]["value"] == others & ~(1 << 7), "time: its bit is one of clone's exit signal"
    assert not clone[0]["value"] & (users | processes | network)
    assert [r["args"][0]["value"] for r in rules if r["names"] == ["unshare"]] == [users]


def test_the_confinement_of_the_spec_chooses_the_profile() -> None:
    for confinement, profile in SECCOMP.items():
        made = create_body(SandboxSpec(IMAGE.id, confinement=confinement), HOST, IMAGE, PLACE)
        assert host_config(made)["SecurityOpt"] == ["no-new-privileges:true", f"seccomp={profile}"]
    keys = {SandboxSpec(IMAGE.id, confinement=confinement).key() for confinement in SECCOMP}
    assert len(keys) == len(SECCOMP), "no warm sandbox of another confinement serves"


def test_nothing_is_shared_with_the_host() -> None:
    config = host_config(body())
    assert config["NetworkMode"] == "none"
    assert config["IpcMode"] == "private"
    assert config["PidMode"] == ""
    assert config["CapDrop"] == ["ALL"]
    assert config["ReadonlyRootfs"] is True
    assert config["Devices"] == []
    assert config["Binds"] == []


def test_a_workspace_in_memory_is_a_sized_mount_of_the_agents_and_no_volume() -> None:
    limits = Limits(memory_bytes=512 * MIB, disk_bytes=64 * MIB, inodes=5000)
    made = create_body(SandboxSpec(IMAGE.id, limits=limits, in_memory=True), HOST, IMAGE, PLACE)
    options = host_config(made)["Tmpfs"]["/workspace"].split(",")
    assert {"nosuid", "nodev", f"size={64 * MIB}", "nr_inodes=5000", "uid=10001", "gid=10001"} <= set(options)
    assert [m["Target"] for m in host_config(made)["Mounts"]] == ["/run/workstead"]
    assert "/workspace" not in host_config(body(limits))["Tmpfs"]


def test_a_verifiers_folders_are_there_for_it_alone_and_within_its_memory() -> None:
    limits = Limits(memory_bytes=64 * MIB, shm_bytes=GIB)
    image = ImageFacts(IMAGE.id, volumes=("/tests", "/v"))
    plain = host_config(create_body(SandboxSpec(IMAGE.id, limits=limits), HOST, image, PLACE))["Tmpfs"]
    made = host_config(create_body(SandboxSpec(IMAGE.id, limits=limits, verifier=True), HOST, image, PLACE))["Tmpfs"]
    assert "/logs" not in plain
    assert "noexec" in plain["/tests"], "a VOLUME of the image, and no verifier's folder"
    assert "uid=10001" in made["/tests"]
    assert "uid=10001" in made["/logs"]
    sizes = [int(str(o).partition("size=")[2].partition(",")[0]) for o in made.values()]
    assert sum(sizes) + shm_bytes(limits) <= limits.memory_bytes // 2
