"""A command as the host sent it, and how it is started."""

# ruff: noqa: PTH113, PTH118 - pathlib costs start-up time

from __future__ import annotations

import errno
import os

from launcher_small import signal
from launcher_wire import Refused

DEFAULT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What PID 1 or we ignore, the program must not: an ignored signal is inherited over exec.
RESET_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def find_program(name: bytes, env: dict[bytes, bytes]) -> bytes:
    """Search the *child's* PATH (relative entries count from its cwd, which is ours at that moment)."""
    if b"/" in name:
        return name
    for folder in env.get(b"PATH", DEFAULT_PATH).split(b":"):
        path = os.path.join(folder or b".", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(errno.ENOENT, "no such program in PATH")


class Command:
    """argv, environment, cwd and stdin as the host sent them: ``cwd, has_env, argc, *argv, *env, stdin``."""

    def __init__(self, fields: list[bytes], inherited: dict[bytes, bytes]) -> None:
        count = int(fields[2])
        self.cwd, self.argv, self.stdin = fields[0], fields[3 : 3 + count], fields[-1]
        pairs = [item.partition(b"=") for item in fields[3 + count : -1]]
        self.env = {name: value for name, _, value in pairs} if fields[1] else inherited
        if not self.argv:
            raise Refused("bad_command", "argv is empty")

    def spawn_on(self, terminal: str) -> int:
        """Start it as the leader of a session whose terminal this is: who opens one in a new session gets it."""
        actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]
        return self._spawn(actions)

    def spawn(self, fds: tuple[int, int, int]) -> int:
        return self._spawn([(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(fds)])

    def _spawn(self, actions: list[tuple[int, ...] | tuple[int, int, str, int, int]]) -> int:
        # posix_spawn is vfork underneath, and knows no cwd: ours is the child's for this moment (one thread uses it).
        try:
            os.chdir(self.cwd)
            path = find_program(self.argv[0], self.env)
            return os.posix_spawn(
                path, self.argv, self.env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=RESET_SIGNALS
            )
        finally:
            os.chdir("/")
