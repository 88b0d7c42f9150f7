"""Contract check of confinements: who may make namespaces has every capability in them, and must gain nothing by it."""

import json

from service.testing.sandbox_bench import Bench, CheckTable, python

CONFINEMENT = CheckTable()

_OWNER = """
import ctypes, errno, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), "?") if libc.syscall(*args) == -1 else "allowed"
def tried(what, *args):
    try:
        what(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")
    return "allowed"
def family(*args):
    return tried(lambda: socket.socket(*args).close())
child = libc.syscall(56, 0x10000000 | 0x20000000 | 0x40000000 | 17, 0, 0, 0, 0)
if child:
    refused = child == -1
    if not refused: os.waitpid(child, 0)
    print("refused" if refused else "", flush=True)
    sys.exit()
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write("0 10001 1")
open("/proc/self/gid_map", "w").write("0 10001 1")
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
plain, buffer = socket.socket(), ctypes.create_string_buffer(256)
print(json.dumps({"all capabilities": int(status["CapEff"], 16) & 0x201000 == 0x201000, "tried": {
    "mount": call(165, b"none", b"/tmp", b"tmpfs", 0, 0), "remount": call(165, None, b"/", None, 33, None),
    "umount": call(166, b"/run/workstead", 2), "pivot_root": call(155, b"/", b"/"), "setns": call(308, 0, 0),
    "move_mount": call(429, -1, b"", -1, b"", 0), "fsopen": call(430, b"tmpfs", 0), "open_tree": call(428, -100, b"/", 0),
    "unshare mounts": call(272, 0x20000), "clone mounts": call(56, 0x20000 | 17, 0, 0, 0, 0),
    "clone host's name": call(56, 0x4000000 | 17, 0, 0, 0, 0), "clone IPC": call(56, 0x8000000 | 17, 0, 0, 0, 0),
    "clone cgroups": call(56, 0x2000000 | 17, 0, 0, 0, 0), "ptrace": call(101, 16, 1, 0, 0), "bpf": call(321, 0, buffer, 120),
    "keyctl": call(250, 0, -3, 0), "io_uring_setup": call(425, 8, buffer), "sethostname": call(170, b"x", 1),
    "perf_event_open": call(298, buffer, 0, -1, -1, 0), "userfaultfd": call(323, 0), "init_module": call(175, buffer, 0, b""),
    **{f"netlink {n}": family(16, socket.SOCK_RAW, n) for n in (0, 6, 12, 15, 16)},
    "raw": family(2, socket.SOCK_RAW, 255), "raw, IPv6": family(10, socket.SOCK_RAW, 255), "packets": family(17, socket.SOCK_RAW),
    "iptables": tried(plain.setsockopt, 0, 64, b"x" * 40), "arptables": tried(plain.setsockopt, 0, 96, b"x" * 40),
    "ebtables": tried(plain.setsockopt, 0, 128, b"x" * 40), "ip6tables": tried(plain.setsockopt, 41, 64, b"x" * 40)}}), flush=True)
os._exit(0)
"""


@CONFINEMENT.add(5, 9, semantic=False, runtimes=("runc",))
async def a_namespace_of_its_own_gives_nothing_of_the_host(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        said = (await python(sandbox, _OWNER)).strip()
    if bench.spec.confinement == "default":
        assert said == "refused"
        return
    seen = json.loads(said)
    assert seen["all capabilities"], "the check is void: it has no namespace of its own"
    wrong = {name: answer for name, answer in seen["tried"].items() if answer != "EPERM"}
    assert not wrong, wrong
