"""The program of the room, run here: whatever a reader does, each file gets its line and the others theirs."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from service.evidence.integrity.bundle import checker_bundle

DRIVER = """
import os, signal, sys, time
from pathlib import Path
from service.evidence.integrity.checker import child, program, readers, texts

real = texts.read_text
program.WALL_S = 1.0

def read(path, kind):
    word = path.read_text().strip()
    if word == "hang": time.sleep(60)
    if word == "spin":
        while True: pass
    if word == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if word == "eat": return bytearray(1536 << 20)
    if word == "raise": raise KeyError("\\x1b[2J<script>")
    if word == "deep": return read(path, kind)
    if word == "stray":
        if os.fork() == 0: time.sleep(60)
        os._exit(0)
    if word == "speak":
        for fd in range(256):
            try: os.write(fd, b'{"n": 1, "forged": 1}')
            except OSError: pass
        os._exit(0)
    return real(path, kind)

texts.read_text = read
sys.exit(program.main(sys.argv[1]))
"""


def _run(folder: Path, words: list[str], *argv: str) -> list[dict[str, Any]]:
    for n, word in enumerate(words):
        (folder / str(n)).mkdir()
        (folder / str(n) / "file").write_text(word + "\n")
    asked = json.dumps([[n, "txt"] for n in range(len(words))]).encode()
    done = subprocess.run(
        [sys.executable, *argv, str(folder)], input=asked, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_file_has_its_line_whatever_its_reader_does(tmp_path: Path) -> None:
    words = ["fine", "hang", "spin", "crash", "eat", "raise", "deep", "stray", "fine too"]
    started = time.monotonic()
    said = {line["n"]: line for line in _run(tmp_path, words, "-c", DRIVER)}
    assert time.monotonic() - started < 15
    kinds: dict[str, list[str]] = {words[n]: [p[0] for p in line["problems"]] for n, line in said.items()}
    assert kinds == {
        "fine": [], "hang": ["timeout"], "spin": ["timeout"], "crash": ["cannot_open"], "eat": ["timeout"],
        "raise": ["cannot_open"], "deep": ["bomb"], "stray": ["timeout"], "fine too": [],
    }  # fmt: skip
    assert "needs more than 1024 MiB" in said[words.index("eat")]["problems"][0][1]
    assert [words[n] for n, line in said.items() if line["opens"]] == ["fine", "fine too"]


def test_a_reader_cannot_speak_for_another_file(tmp_path: Path) -> None:
    lines = _run(tmp_path, ["speak", "fine"], "-c", DRIVER)
    assert sorted(line["n"] for line in lines) == [0, 1]
    assert [line["n"] for line in lines if "forged" in line] == [0]


@pytest.mark.timeout(60)
def test_the_bundle_runs_alone(tmp_path: Path) -> None:
    bundle = tmp_path / "check.pyz"
    bundle.write_bytes(checker_bundle())
    folder = tmp_path / "in"
    folder.mkdir()
    (line,) = _run(folder, ["text"], "-I", str(bundle))
    assert (line["opens"], line["sniffed"], line["facts"]) == (True, "text", {"rows": 1, "encoding": "utf-8"})
