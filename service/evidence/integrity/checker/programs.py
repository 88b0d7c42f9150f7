"""Readers that are programs of the image: bounded output, bounded time, no variable of anybody else."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.evidence.integrity.checker.findings import MIB, Trouble

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
_MAX_OUTPUT = 4 * MIB


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """The first line of what went wrong."""
        return next((line.strip() for line in self.stderr.splitlines() if line.strip()), "")


def run(argv: Sequence[str | Path], scratch: Path, *, libraries: str = "", timeout_s: float = 30) -> Done:
    """Run a program; its output goes through files, so that a flood ends at a limit on file size. Raises Trouble."""
    environment = _ENVIRONMENT | ({"LD_LIBRARY_PATH": libraries} if libraries else {})
    out, err = scratch / "out", scratch / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, timeout=timeout_s, check=False
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Trouble("timeout", f"not read within {timeout_s:g} s") from error
    return Done(done.returncode, _text(out), _text(err))


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_OUTPUT).decode("utf-8", "replace")
