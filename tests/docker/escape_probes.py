# ruff: noqa: PTH110, PTH123
"""Runs inside a sandbox: tries each way out and prints which were refused. argv[1]: the host's flag file."""

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable

FLAG = sys.argv[1]
LIBC = ctypes.CDLL(None, use_errno=True)
SECRET_PLACES = ["/proc/1/root", "/proc/self/root", "/proc/self/cwd/../..", "/host", "/rootfs", "/mnt", "/media", "/.."]
MUST_NOT_READ = [
    "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/loop0",
    "/dev/loop-control", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/var/run/docker.sock",
    "/run/containerd/containerd.sock", "/etc/shadow", "/root/.ssh/id_rsa", "/sys/firmware/dmi/tables/DMI",
    "/proc/1/mem", "/proc/1/environ_of_host", "/run/secrets", "/var/lib/docker", "/sys/kernel/debug/x",
]  # fmt: skip
MUST_NOT_WRITE = [
    "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/fs/binfmt_misc/register", "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/uevent_helper", "/sys/power/state",
    "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/rdma/release_agent", "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/devices/devices.allow", "/etc/passwd", "/etc/ld.so.preload", "/usr/bin/python3", "/sbin/docker-init",
    "/etc/hosts", "/etc/resolv.conf", "/run/workstead/program.py", "/opt/kit/x",
    "/proc/1/attr/current", "/proc/self/uid_map_of_host", "/sys/module/kernel/parameters/panic",
]  # fmt: skip
CALLS = {
    "mount proc": (165, b"proc", b"/workspace", b"proc", 0, None),
    "bind /": (165, b"/", b"/workspace", None, 4096, None),
    "remount": (165, None, b"/", None, 32, None),
    "umount": (166, b"/run/workstead", 2),
    "pivot_root": (155, b"/workspace", b"/workspace"),
    "chroot": (161, b"/workspace"),
    "unshare mount": (272, 0x20000),
    "unshare net": (272, 0x40000000),
    "setns": (308, 3, 0),
    "mknod block": (133, b"/workspace/disk", 0o60666, 0xFE00),
    "mknod char": (133, b"/workspace/mem", 0o20666, 0x0101),
    "init_module": (175, b"x", 1, b""),
    "finit_module": (313, 0, b"", 0),
    "kexec": (246, 0, 0, 0, 0),
    "reboot": (169, 0xFEE1DEAD, 672274793, 0, 0),
    "swapon": (167, b"/workspace/x", 0),
    "open_by_handle_at": (304, -100, b"\0" * 32, 0),
    "ptrace 1": (101, 16, 1, 0, 0),
    "process_vm_writev": (311, 1, b"", 0, b"", 0, 0),
    "sethostname": (170, b"x", 1),
    "iopl": (172, 3),
    "acct": (163, b"/workspace/x"),
    "setuid 0": (105, 0),
    "setgid 0": (106, 0),
    "setgroups 0": (116, 1, ctypes.byref(ctypes.c_uint32(0))),
}


def syscall(*args: object) -> None:
    ctypes.set_errno(0)
    if LIBC.syscall(*args) == -1:
        raise OSError(ctypes.get_errno(), "refused")


def read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(16)


def write(path: str, data: bytes = b"1") -> None:
    with open(path, "r+b", buffering=0) as file:
        file.write(data)


def dial(address: str) -> None:
    socket.create_connection((address, 2375), 1).close()


probes: dict[str, Callable[[], object]] = {}
for path in MUST_NOT_READ:
    probes["read " + path] = lambda p=path: read(p)
for path in MUST_NOT_WRITE:
    probes["write " + path] = lambda p=path: write(p)
probes["hide from the out-of-memory killer"] = lambda: write("/proc/self/oom_score_adj", b"-1000")
for place in SECRET_PLACES:
    probes["flag by " + place] = lambda p=place: read(p + FLAG)
for name, arguments in CALLS.items():
    probes[name] = lambda a=arguments: syscall(*a)
for address in ("172.17.0.1", "169.254.169.254", "10.0.2.2"):
    probes["dial " + address] = lambda a=address: dial(a)

# Inside gVisor these change only its own, emulated kernel; nothing of the host is behind them.
EMULATED = {"hide from the out-of-memory killer", "unshare mount", "unshare net", "mknod block", "mknod char"}
refused: list[str] = []
harmless: list[str] = []
succeeded: list[str] = []
for name, probe in probes.items():
    try:
        probe()
    except (OSError, ValueError) as error:
        refused.append(f"{name}: {errno.errorcode.get(getattr(error, 'errno', 0) or 0, str(error))}")
    else:
        gvisor = not os.path.exists("/proc/kallsyms")
        (harmless if gvisor and name in EMULATED else succeeded).append(name)
print(json.dumps({"refused": refused, "harmless": harmless, "succeeded": succeeded}))
