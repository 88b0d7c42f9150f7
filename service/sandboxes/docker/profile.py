"""The one function that decides what a container of ours may do.

Its only inputs are the closed spec, facts about host and image, and the sandbox's own names: nothing that a client
sends can reach the engine's HostConfig. The body is the Engine API's own JSON, so that the attestation compares like
with like. Reasons and measurements: docs of the security model (section "container profile").
"""

from typing import Any

from service.domain.limits import KIB, MIB, Limits
from service.sandboxes.contract import HOME, WORKSPACE, SandboxSpec
from service.sandboxes.docker.facts import (
    DEPLOYMENT_LABEL,
    LABEL_PREFIX,
    SANDBOX_LABEL,
    HostFacts,
    ImageFacts,
    Placement,
)
from service.sandboxes.docker.seccomp import SECCOMP

UID = 10001
CONTROL = "/run/workstead"
KIT = "/opt/kit"
GVISOR_TASKS = 512
PROGRAM = f"{CONTROL}/program.py"
TESTS, LOGS = "/tests", "/logs"
OWN_MOUNTS = (WORKSPACE, KIT, CONTROL, "/tmp", "/var/tmp", "/run")  # noqa: S108 - paths inside the container

_SCRATCH = "rw,nosuid,nodev,noexec"


def create_body(spec: SandboxSpec, host: HostFacts, image: ImageFacts, place: Placement) -> dict[str, Any]:
    """Return the body of the engine's create call."""
    return {
        "Image": image.id,
        "Hostname": "sandbox",
        "User": f"{UID}:{UID}",
        "WorkingDir": WORKSPACE,
        "Entrypoint": list(place.interpreter),
        "Cmd": [],
        "Env": _environment(image),
        "Labels": _labels(image, place),
        "Volumes": {},
        "ExposedPorts": {},
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGKILL",
        "StopTimeout": 0,
        "Tty": False,
        "OpenStdin": False,
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        # Not even the engine's network ``none``: the same empty namespace at less than half of the cost of a start.
        "NetworkDisabled": True,
        "HostConfig": _host_config(spec, host, image, place),
    }


def _host_config(spec: SandboxSpec, host: HostFacts, image: ImageFacts, place: Placement) -> dict[str, Any]:
    limits = spec.limits
    config: dict[str, Any] = {
        "Runtime": spec.runtime,
        "NetworkMode": "none",
        "IpcMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "Privileged": False,
        "PublishAllPorts": False,
        "CapDrop": ["ALL"],
        "CapAdd": [],
        "SecurityOpt": ["no-new-privileges:true", "seccomp=" + SECCOMP[spec.confinement]],
        "ReadonlyRootfs": True,
        "Init": True,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "LogConfig": {"Type": "none", "Config": {}},
        "Mounts": _mounts(spec, place),
        "Tmpfs": _tmpfs(spec, image),
        "ShmSize": shm_bytes(limits),
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "OomKillDisable": False,
        "OomScoreAdj": 500,
        "NanoCpus": int(limits.cpus * 1_000_000_000),
        "CpuShares": 256,
        "PidsLimit": pids_limit(spec),
        "Ulimits": _ulimits(limits),
        "Sysctls": {"net.ipv4.ip_unprivileged_port_start": "1024"},
        "Devices": [],
        "Binds": [],
    }
    if host.cgroup_version == 1:
        config |= {"MemorySwappiness": 0, "BlkioWeight": 100}
    else:
        config |= {"CgroupnsMode": "private"}
    return config


def pids_limit(spec: SandboxSpec) -> int:
    """Return the limit on host tasks. gVisor's own threads and stubs count too, and it panics when it cannot have one."""
    return spec.limits.pids if spec.runtime == "runc" else 2 * spec.limits.pids + GVISOR_TASKS


def shm_bytes(limits: Limits) -> int:
    """Return the size of /dev/shm: pages there count against the memory limit, so it never takes more than a quarter."""
    return min(limits.shm_bytes, limits.memory_bytes // 4)


def _tmpfs(spec: SandboxSpec, image: ImageFacts) -> dict[str, str]:
    """Scratch mounts. Their sizes and /dev/shm stay below half of the memory limit: filling all kills nobody.

    A workspace in memory comes on top of that; the spec's maker says how large it is.
    """
    memory = spec.limits.memory_bytes
    covered = [v for v in covered_volumes(image) if not (spec.verifier and v in (TESTS, LOGS))]
    each = max(64 * KIB, min(MIB, memory // 64 // max(1, len(covered))))
    return {
        "/tmp": f"rw,nosuid,nodev,exec,size={min(256 * MIB, memory // 8)},nr_inodes=65536,mode=1777",  # noqa: S108
        "/var/tmp": f"{_SCRATCH},size={min(64 * MIB, memory // 32)},nr_inodes=16384,mode=1777",  # noqa: S108
        "/run": f"{_SCRATCH},size={min(16 * MIB, memory // 64)},nr_inodes=4096,mode=755",
        **dict.fromkeys(covered, f"{_SCRATCH},size={each},nr_inodes=1024,mode=1777"),
        **(_verifier_tmpfs(memory) if spec.verifier else {}),
        **({WORKSPACE: _workspace_tmpfs(spec.limits)} if spec.in_memory else {}),
    }


def _verifier_tmpfs(memory: int) -> dict[str, str]:
    own = f"nr_inodes=16384,mode=755,uid={UID},gid={UID}"
    return {
        TESTS: f"rw,nosuid,nodev,exec,size={tests_bytes(memory)},{own}",
        LOGS: f"{_SCRATCH},size={min(16 * MIB, memory // 64)},{own}",
    }


def tests_bytes(memory: int) -> int:
    """Return the size of a verifier's /tests in a sandbox of so much memory."""
    return min(64 * MIB, memory // 32)


def _workspace_tmpfs(limits: Limits) -> str:
    size = f"size={limits.disk_bytes},nr_inodes={limits.inodes}"
    return f"rw,nosuid,nodev,exec,{size},mode=755,uid={UID},gid={UID}"


def covered_volumes(image: ImageFacts) -> list[str]:
    """Return the image's VOLUME paths that none of our mounts covers: each would be a writable host directory."""
    return [v for v in image.volumes if v not in OWN_MOUNTS]


def _mounts(spec: SandboxSpec, place: Placement) -> list[dict[str, Any]]:
    mounts = [
        *([] if spec.in_memory else [_volume(place.workspace_volume, WORKSPACE, read_only=False)]),
        {
            "Type": "bind",
            "Source": place.control_dir,
            "Target": CONTROL,
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rprivate"},
        },
    ]
    if place.kit_volume is not None:
        mounts.append(_volume(place.kit_volume, KIT, read_only=True))
    return mounts


def _volume(name: str, target: str, *, read_only: bool) -> dict[str, Any]:
    # NoCopy: otherwise the image's own files at that path would be copied into the volume.
    options = {"NoCopy": True}
    return {"Type": "volume", "Source": name, "Target": target, "ReadOnly": read_only, "VolumeOptions": options}


def _ulimits(limits: Limits) -> list[dict[str, Any]]:
    # No nproc: it counts per uid of the host, that is over all sandboxes; the pids limit is the right one.
    values = {
        "nofile": (4096, 16384),
        "core": (0, 0),
        "fsize": (limits.disk_bytes, limits.disk_bytes),
        "memlock": (64 * KIB, 64 * KIB),
    }
    return [{"Name": name, "Soft": soft, "Hard": hard} for name, (soft, hard) in values.items()]


def _environment(image: ImageFacts) -> list[str]:
    """Return the launcher's environment; every variable of the image is emptied (LD_PRELOAD, BASH_ENV …)."""
    own = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "LD_PRELOAD": "",
        "LD_LIBRARY_PATH": "",
        "LD_AUDIT": "",
    }
    return [f"{k}={v}" for k, v in {**dict.fromkeys(image.env_names, ""), **own}.items()]


def _labels(image: ImageFacts, place: Placement) -> dict[str, str]:
    """Return the labels; an image's labels in our name space are emptied, ours are set last."""
    spoofed = {name: "" for name in image.label_names if name.startswith(LABEL_PREFIX)}
    return {**spoofed, DEPLOYMENT_LABEL: place.deployment, SANDBOX_LABEL: place.sandbox_id}
