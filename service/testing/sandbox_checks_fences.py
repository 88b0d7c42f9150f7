"""Contract checks of isolation: what a program inside is, sees and may call. Not for the memory fake."""

import json

from service.sandboxes.contract import Confinement
from service.testing.sandbox_bench import ENV, Bench, CheckTable, python

FENCES = CheckTable()
RUNC = ("runc",)

_STATUS = "print(open('/proc/self/status').read())"
_FLAGS_AND_DEVICES = """
import json, os
status = dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)
print(json.dumps({"status": {k: v.strip() for k, v in status.items()}, "dev": sorted(os.listdir('/dev')),
 "socket": any(os.path.exists(p) for p in ('/var/run/docker.sock', '/run/docker.sock', '/run/containerd')),
 "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()]}))
"""
_WRITABLE = {"/workspace", "/tmp", "/var/tmp", "/dev/shm"}  # noqa: S108 - paths inside
_STANDARD_DEV = {
    "console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout",
    "tty", "urandom", "zero",
}  # fmt: skip
_SYSCALLS = """
import ctypes, errno, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    value = libc.syscall(*args)
    if value == 0 and args[0] == 56:
        os._exit(0)  # the clone
    return errno.errorcode.get(ctypes.get_errno(), "?") if value == -1 else "allowed"
def family(number, kind=socket.SOCK_STREAM, protocol=0):
    try:
        socket.socket(number, kind, protocol).close()
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")
    return "allowed"
buffer = ctypes.create_string_buffer(256)
print(json.dumps({
    "io_uring_setup": call(425, 8, buffer), "bpf": call(321, 0, buffer, 120), "userfaultfd": call(323, 0),
    "perf_event_open": call(298, buffer, 0, -1, -1, 0), "keyctl": call(250, 0, -3, 0), "ptrace": call(101, 16, 1, 0, 0),
    "process_vm_readv": call(310, 1, 0, 0, 0, 0, 0), "mount": call(165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "clone_ns": call(56, 0x10000000 | 17, 0, 0, 0, 0),
    "unshare": call(272, 0x10000000), "setns": call(308, 0, 0),
    "unshare mounts": call(272, 0x20000), "clone mounts": call(56, 0x20000 | 17, 0, 0, 0, 0),
    "clone cgroups": call(56, 0x2000000 | 17, 0, 0, 0, 0), "unshare network": call(272, 0x40000000),
    "init_module": call(175, buffer, 0, b""), "kexec_load": call(246, 0, 0, 0, 0), "pivot_root": call(155, b"/", b"/"),
    "open_by_handle_at": call(304, -1, buffer, 0), "settimeofday": call(164, buffer, 0), "chroot": call(161, b"/tmp"),
    "AF_VSOCK": family(40), "AF_ALG": family(38, socket.SOCK_SEQPACKET), "AF_PACKET": family(17, socket.SOCK_RAW),
    "raw": family(2, socket.SOCK_RAW, 1)}))
"""
_GIVEN: dict[Confinement, set[str]] = {"default": set(), "desktop": {"unshare", "clone_ns", "chroot"}}
_WORKS = """
import multiprocessing, os, socket, sqlite3, subprocess, tempfile, threading, time
os.mkfifo('/workspace/fifo'); os.unlink('/workspace/fifo')
t = threading.Thread(target=time.sleep, args=(0,)); t.start(); t.join()
with multiprocessing.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]
assert subprocess.run(['sh', '-c', 'echo a | tr a b'], capture_output=True).stdout == b'b\\n'
a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
s = socket.create_server(('127.0.0.1', 8080)); c = socket.create_connection(('127.0.0.1', 8080)); c.close()
with sqlite3.connect('/workspace/x.db') as db: db.execute('create table t (a)')
with tempfile.NamedTemporaryFile(suffix='.sh', mode='w') as f:
    f.write('#!/bin/sh\\necho ran\\n'); f.flush(); os.chmod(f.name, 0o755)
    assert subprocess.run(['sh', f.name], capture_output=True).stdout == b'ran\\n'
print('works')
"""


@FENCES.add(4, semantic=False)
async def the_program_has_no_power(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        seen = json.loads(await python(sandbox, _FLAGS_AND_DEVICES))
        assert seen["ids"][:4] == [10001] * 4
        assert set(seen["ids"][4]) <= {10001}
        assert not seen["socket"]
        # gVisor's /dev is its own: its fuse has no host behind it.
        emulated = set[str]() if bench.spec.runtime in RUNC else {"fuse"}
        assert set(seen["dev"]) <= _STANDARD_DEV | emulated
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd"):
            assert int(seen["status"][name], 16) == 0, name


@FENCES.add(4, semantic=False, runtimes=RUNC)
async def the_kernel_enforces_it(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        status = dict(line.split(":", 1) for line in (await python(sandbox, _STATUS)).splitlines() if ":" in line)
        assert status["NoNewPrivs"].strip() == "1"
        assert status["Seccomp"].strip() == "2"


@FENCES.add(9, semantic=False, runtimes=RUNC)
async def dangerous_calls_are_refused(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        answers = json.loads(await python(sandbox, _SYSCALLS))
        given = _GIVEN[bench.spec.confinement]
        wrong = {n: answer for n, answer in answers.items() if answer != ("allowed" if n in given else "EPERM")}
        assert not wrong, wrong


@FENCES.add(9, semantic=False)
async def dangerous_calls_never_succeed(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        answers = json.loads(await python(sandbox, _SYSCALLS))
        # gVisor serves io_uring_setup from its own kernel; on the host's it is refused (the check above).
        names = ("AF_VSOCK", "AF_ALG", "bpf", "userfaultfd", "perf_event_open", "init_module")
        assert not [name for name in names if answers[name] == "allowed"], answers


@FENCES.add(semantic=False)
async def ordinary_work_works(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        assert (await python(sandbox, _WORKS)).strip() == "works"


@FENCES.add(6, semantic=False)
async def a_setuid_file_gives_nothing(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        said = await python(
            sandbox,
            "import os, shutil, subprocess; shutil.copy('/usr/bin/id', '/workspace/id'); os.chmod('/workspace/id', 0o4755)\n"
            "print(subprocess.run(['/workspace/id', '-u'], capture_output=True, text=True).stdout)\n",
        )
        assert said.strip() == "10001"


@FENCES.add(semantic=False)
async def only_the_workspace_and_scratch_are_writable(bench: Bench) -> None:
    code = """
import os
writable = []
for top in ('/', '/etc', '/usr', '/usr/bin', '/var', '/opt', '/opt/kit', '/home', '/root', '/run', '/run/workstead', '/srv',
            '/dev', '/proc/sys/kernel', '/sys', '/sys/fs/cgroup', '/workspace', '/tmp', '/var/tmp', '/dev/shm'):
    try:
        open(top + '/.probe', 'w').close(); writable.append(top)
    except OSError: pass
print(*writable)
"""
    async with bench.sandbox() as sandbox:
        assert set((await python(sandbox, code)).split()) <= _WRITABLE


@FENCES.add(35, semantic=False)
async def nothing_of_the_host_is_in_the_environment(bench: Bench) -> None:
    code = """
import glob, os
for path in glob.glob('/proc/[0-9]*/environ'):
    try: print(open(path, 'rb').read())
    except OSError: pass
print(open('/proc/self/mountinfo').read() if os.path.exists('/proc/self/mountinfo') else '')
"""
    async with bench.sandbox() as sandbox:
        said = await python(sandbox, code)
        for word in ("API_KEY", "SECRET", "PASSWORD", "DOCKER_HOST"):
            assert word not in said


@FENCES.add(47, semantic=False)
async def there_is_no_network(bench: Bench) -> None:
    code = """
import socket
reached = []
for host in ('172.17.0.1', '10.0.0.1', '192.168.0.1', '169.254.169.254', '1.1.1.1', 'fd00::1', '::ffff:10.0.0.1', '8.8.8.8'):
    try: socket.create_connection((host, 80), 1).close(); reached.append(host)
    except OSError: pass
try: socket.getaddrinfo('example.com', 80); reached.append('dns')
except OSError: pass
print(*reached)
"""
    async with bench.sandbox() as sandbox:
        assert not (await python(sandbox, code)).split()


@FENCES.add(semantic=False)
async def low_ports_are_ours(bench: Bench) -> None:
    code = """
import socket
try: socket.socket().bind(('127.0.0.1', 80)); print('bound')
except OSError: print('refused')
"""
    async with bench.sandbox() as sandbox:
        assert (await python(sandbox, code)).strip() == "refused"


@FENCES.add(101, semantic=False)
async def nothing_is_left_for_the_next_sandbox(bench: Bench) -> None:
    leave = (
        "import os, socket\nfor d in ('/workspace', '/workspace/.home', '/tmp', '/var/tmp', '/dev/shm'):\n"
        "  open(d + '/trace-7f3a', 'w').write('trace')\n"
    )
    look = (
        "import os\nfound = []\nfor top in ('/workspace', '/tmp', '/var/tmp', '/dev/shm', '/run', '/home'):\n"
        "  for d, _, names in os.walk(top): found += [d for n in names if 'trace-7f3a' in n]\nprint(*found)"
    )
    async with bench.sandbox() as first:
        await python(first, leave)
        async with bench.sandbox() as second:
            assert not (await python(second, look)).split()
            assert (
                first.id
                not in (await second.exec(["cat", "/proc/self/mountinfo", "/etc/hosts"], env=ENV)).stdout.decode()
            )
    async with bench.sandbox() as third:
        assert not (await python(third, look)).split()
