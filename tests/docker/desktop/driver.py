"""Speaks to deskd as the host does, byte by byte, so that tests may also say what the host never would."""

import json
import struct
from collections.abc import Sequence
from typing import Any

from sandbox_images.catalogue import HERE
from service.desktop.environment import SCREEN_ENVIRONMENT
from service.sandboxes.contract import Pipe, Sandbox
from service.testing.sandbox_bench import ENV

SOURCES = HERE / "desktop" / "deskd"
INSIDE = ".deskd"
SCREEN = ENV | SCREEN_ENVIRONMENT | {"HOME": "/workspace/.home", "LC_ALL": "C.UTF-8"}
QUIET = {"quiet_s": 0.4, "cap_s": 10}
Said = dict[str, Any]


def do(kind: str, **fields: Any) -> Said:
    return {"type": kind, **fields}


class Deskd:
    """One deskd of the sources beside us, in the sandbox; ``hello`` is what it said first."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.hello: Said = {}
        self._bytes = bytearray()
        self._number = 0

    @classmethod
    async def open(cls, sandbox: Sandbox, surface: str = "desktop", size: str = "1280x800") -> "Deskd":
        program = ["python3", "-I", f"/workspace/{INSIDE}/main.py", "--surface", surface, "--size", size]
        self = cls(await sandbox.open_pipe(program, env=SCREEN))
        self.hello = (await self.answer())[0]
        return self

    async def answer(self) -> tuple[Said, bytes]:
        """Raises EOFError."""
        head, body = struct.unpack(">II", await self._exactly(8))
        return json.loads(await self._exactly(head)), await self._exactly(body)

    async def say(self, what: str, **fields: Any) -> int:
        self._number += 1
        text = json.dumps({"id": self._number, "do": what, **fields}).encode()
        await self.pipe.write(struct.pack(">II", len(text), 0) + text)
        return self._number

    async def perform(self, *actions: Said, **fields: Any) -> tuple[Said, bytes]:
        number = await self.say("perform", actions=actions, **fields)
        head, body = await self.answer()
        assert head["id"] == number, head
        return head, body

    async def done(self, *actions: Said, **fields: Any) -> Said:
        """Perform without a fault; return the answer's head."""
        head, _ = await self.perform(*actions, **fields)
        assert [result for result in head["results"] if "error" in result] == []
        return head

    async def refused(self, *actions: Said) -> str:
        """Return the word with which the last action was refused."""
        head, _ = await self.perform(*actions)
        return head["results"][-1]["error"]

    async def window(self, title: str) -> None:
        """Wait until a window of that title is active and at rest: programs are shown before they take keys."""
        for _ in range(600):
            if title in (await self.done(do("wait", seconds=0.1)))["state"]["title"]:
                break
        await self.done(settle={"quiet_s": 1.0, "cap_s": 15})

    async def page(self, title: str, html: str) -> None:
        """Show a page in the browser; its title tells that it is there, so no two have the same."""
        await self.done(do("navigate", text=f"data:text/html;charset=utf-8,<title>{title}</title>{html}"))
        await self.window(title)

    async def text(self, *actions: Said) -> str:
        """Return what the last action said."""
        return (await self.done(*actions))["results"][-1]["text"]

    async def close(self) -> None:
        await self.pipe.close()

    async def _exactly(self, size: int) -> bytes:
        while len(self._bytes) < size:
            piece = await self.pipe.read()
            if not piece:
                raise EOFError(f"{len(self._bytes)} of {size} bytes")
            self._bytes += piece
        found = bytes(self._bytes[:size])
        del self._bytes[:size]
        return found


async def put_sources(sandbox: Sandbox) -> None:
    for source in SOURCES.glob("*.py"):
        await sandbox.write_file(f"{INSIDE}/{source.name}", source.read_bytes())


async def start(sandbox: Sandbox, argv: Sequence[str]) -> None:
    """Start a program on the screen that outlives the call."""
    quoted = " ".join(f"'{word}'" for word in argv)
    done = await sandbox.exec(["sh", "-c", f"setsid {quoted} </dev/null >/dev/null 2>&1 &"], env=SCREEN, timeout_s=30)
    assert done.code == 0, done.stderr


async def end(sandbox: Sandbox, program: str, signal: str = "TERM") -> None:
    """Kill a program of ours by its file's name, and wait until it is gone."""
    # In brackets, so that the shell's own command line does not match.
    pattern = f"[.]deskd/{program}"
    await shell(sandbox, f"pkill -{signal} -f '{pattern}'; while pgrep -f '{pattern}'; do sleep 0.05; done")


async def shell(sandbox: Sandbox, line: str) -> str:
    done = await sandbox.exec(["sh", "-c", line], env=SCREEN, timeout_s=60)
    return done.stdout.decode()
