"""A real launcher in a process of its own, as another user where we are root, and links to it."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from service.sandboxes.contract import Command, Exited, Frame
from service.sandboxes.docker.framing import KEY_BYTES
from service.sandboxes.docker.link import LauncherLink
from service.sandboxes.docker.link_install import install_launcher

AGENT_UID = 10001
PATH = "/usr/local/bin:/usr/bin:/bin"


def as_agent() -> list[str]:
    """The prefix that gives up root: only then is the kernel's protection of the launcher visible."""
    if os.geteuid() != 0:
        return []
    user = str(AGENT_UID)
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set=-all", "--no-new-privs"]


def interpreter() -> str:
    """A Python that the agent's user may run."""
    for path in ("/usr/bin/python3", sys.executable):
        if shutil.which(path) and subprocess.run([*as_agent(), path, "-c", ""], check=False).returncode == 0:
            return path
    raise RuntimeError("no Python that the agent's user may run")


class Rig:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="launcher-"))  # a short path, readable for the agent
        self.folder.chmod(0o755)
        self.control = self.folder / "control"
        self.workspace = self.folder / "workspace"
        (self.workspace / ".home").mkdir(parents=True)
        self.key = os.urandom(KEY_BYTES)
        self.links: list[LauncherLink] = []
        self.process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            for path in (self.workspace, self.workspace / ".home"):
                os.chown(path, AGENT_UID, AGENT_UID)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def launch(self) -> None:
        install_launcher(self.control)
        program = [interpreter(), "-I", "-S", str(self.control / "program.py")]
        places = ["--socket", str(self.control / "launcher.sock"), "--workspace", str(self.workspace)]
        self.process = subprocess.Popen([*as_agent(), *program, *places], env={"PATH": PATH, "LANG": "C.UTF-8"})

    async def link(self, *, may_key: bool = False, wait: bool = True, reconnect_s: float = 10) -> LauncherLink:
        link = LauncherLink(self.control, self.key, may_key=may_key, reconnect_s=reconnect_s)
        self.links.append(link)
        await link.listen()
        if wait:
            await link.wait_connected(10)
        return link

    async def up(self) -> LauncherLink:
        """Launch and key, as for a new sandbox."""
        link = await self.link(may_key=True, wait=False)
        self.launch()
        await link.wait_connected(10)
        return link

    def shell(self, script: str, *, stdin: bytes = b"", deadline_s: float = 60) -> Command:
        env = {"PATH": PATH}
        return Command(["sh", "-c", script], env, stdin=stdin, cwd=str(self.workspace), deadline_s=deadline_s)

    def python(self, script: str, **kwargs: float) -> Command:
        argv = [interpreter(), "-I", "-c", script]
        return Command(argv, {"PATH": PATH}, cwd=str(self.workspace), deadline_s=kwargs.get("deadline_s", 60))

    def descriptors(self) -> int:
        """Open descriptors of the launcher (readable for root only: it is not dumpable)."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def zombies(self) -> int:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return sum(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z" for child in children)

    async def close(self) -> None:
        for link in self.links:
            await link.close()
        if self.process is not None:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)
        shutil.rmtree(self.folder)


class Collected:
    """Everything that an ``output()`` yielded."""

    def __init__(self) -> None:
        self.streams = {"stdout": bytearray(), "stderr": bytearray()}
        self.exited: Exited | None = None

    def add(self, item: Frame | Exited) -> None:
        if isinstance(item, Exited):
            self.exited = item
            return
        assert 0 < len(item.data) <= 64 << 10
        assert item.offset == len(self.streams[item.stream]), "a byte lost or doubled"
        self.streams[item.stream] += item.data

    @property
    def stdout(self) -> bytes:
        return bytes(self.streams["stdout"])

    @property
    def stderr(self) -> bytes:
        return bytes(self.streams["stderr"])

    @property
    def end(self) -> Exited:
        assert self.exited is not None
        return self.exited


async def run_to_end(link: LauncherLink, command: Command | None = None) -> Collected:
    """Start (unless it was), read, acknowledge everything, until the exit."""
    if command is not None:
        await link.start(command)
    collected = Collected()
    async with asyncio.timeout(40):
        async for item in link.output():
            collected.add(item)
            if isinstance(item, Frame):
                await link.ack(item.stream, item.offset + len(item.data))
    return collected


def is_dead(pid: int) -> bool:
    """Gone, or waiting for whoever reaps orphans."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it is in another process
            await asyncio.sleep(0.005)
