"""README.md's blocks that can run: those whose fence says ``sh run`` or ``python run``."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(sh|python) run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    section: str
    language: str
    text: str


def blocks() -> list[Block]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    headings = [(m.start(), m.group(1)) for m in _HEADING.finditer(text)]
    return [
        Block([name for at, name in headings if at < m.start()][-1], m.group(1), m.group(2))
        for m in _BLOCK.finditer(text)
    ]


def of(section: str) -> Block:
    return next(block for block in blocks() if block.section == section)


def run(block: Block, url: str, token: str, timeout_s: float = 100) -> subprocess.CompletedProcess[str]:
    """Run a block as a person would who has the virtual environment active; every command of it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "WORKSTEAD_URL": url, "WORKSTEAD_TOKEN": token, "COLUMNS": "200"}
    argv = [sys.executable, "-"] if block.language == "python" else ["bash", "-euo", "pipefail", "-s"]
    return subprocess.run(
        argv, input=block.text, env=env, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False
    )
