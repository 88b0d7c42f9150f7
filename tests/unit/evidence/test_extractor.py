"""The extracting program, run here: whatever a reader does, each file gets its line and the others theirs."""

import json
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from service.evidence.extraction.bundle import extractor_bundle

CAPS = {"file_chars": 100, "file_images": 4, "image_pixels": 100, "pages": 3, "parts": 20, "notes": 5, "file_s": 1.5}
DRIVER = """
import io, os, signal, sys, time
from service.evidence.extraction.inside import program
from service.evidence.extraction.inside.readers import texts
from PIL import Image

real = texts.read_text
program.GRACE_S = 1.0

def read(path, out):
    word = path.read_text().strip()
    if word == "sleep": out.part("text", "", "so far"); time.sleep(60)
    if word == "hang":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
    if word == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if word == "eat": out.part("text", "", "so far"); return bytearray(2 << 30)
    if word == "raise": raise KeyError("\\x1b[2J<script>")
    if word == "deep": return read(path, out)
    if word == "picture":
        made = io.BytesIO()
        Image.new("RGB", (300, 20), "red").save(made, "PNG")
        out.picture("mine", "file", made.getvalue())
    if word == "speak":
        for fd in range(256):
            try: os.write(fd, b'{"n": 1, "kind": "forged", "images": [], "state": "extracted"}\\n')
            except OSError: pass
        os._exit(0)
    if word == "flood":
        for fd in range(3, 256):
            try:
                while True: os.write(fd, b"x" * (1 << 20))
            except OSError: pass
    return real(path, out)

texts.read_text = read
sys.exit(program.main(sys.argv[1]))
"""


def run(folder: Path, words: list[str], *argv: str, ext: str = "txt") -> dict[int, dict[str, Any]]:
    for n, word in enumerate(words):
        (folder / str(n)).mkdir()
        (folder / str(n) / "file").write_text(word + "\n")
    asked = json.dumps({"caps": CAPS, "files": [[n, ext] for n in range(len(words))]}).encode()
    done = subprocess.run(
        [sys.executable, *argv, str(folder)], input=asked, capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(line["n"] for line in lines) == [*range(len(words))]
    return {line["n"]: line for line in lines}


def test_each_file_has_its_line_whatever_its_reader_does(tmp_path: Path) -> None:
    words = ["fine", "sleep", "hang", "crash", "eat", "raise", "deep", "flood", "picture", "fine too"]
    started = time.monotonic()
    said = {words[n]: line for n, line in run(tmp_path, words, "-c", DRIVER).items()}
    assert time.monotonic() - started < 60
    assert {word: (line["state"], line["error"]) for word, line in said.items() if word != "flood"} == {
        "fine": ("extracted", None), "sleep": ("failed", "timeout"), "hang": ("failed", "timeout"),
        "crash": ("failed", "extractor_failed"), "eat": ("failed", "bomb"), "raise": ("failed", "cannot_open"),
        "deep": ("failed", "bomb"), "picture": ("extracted", None), "fine too": ("extracted", None),
    }  # fmt: skip
    assert said["flood"]["state"] == "failed"
    assert [said[word]["pieces"][0][2] for word in ("sleep", "eat")] == ["so far", "so far"]


def test_a_picture_has_the_digest_of_what_lies_there(tmp_path: Path) -> None:
    (row,) = run(tmp_path, ["picture"], "-c", DRIVER)[0]["images"]
    *_, width, height, size, digest = row
    data = (tmp_path / "pictures" / digest).read_bytes()
    assert (width, height) == (100, 7)
    assert (len(data), sha256(data).hexdigest()) == (size, digest)


def test_a_reader_cannot_speak_for_another_file(tmp_path: Path) -> None:
    lines = run(tmp_path, ["speak", "fine"], "-c", DRIVER)
    assert (lines[0]["kind"], lines[1]["kind"]) == ("text", "text")
    assert lines[1]["pieces"][0][2] == "fine\n"


@pytest.mark.timeout(60)
def test_the_bundle_runs_alone(tmp_path: Path) -> None:
    bundle, folder = tmp_path / "extract.pyz", tmp_path / "in"
    bundle.write_bytes(extractor_bundle())
    folder.mkdir()
    line = run(folder, ["x" * 150], "-I", str(bundle), ext="md")[0]
    ((kind, _, head, tail, missing),) = line["pieces"]
    assert (kind, len(head), len(tail), missing) == ("text", 67, 33, 51)
    assert line["facts"] == {"encoding": "utf-8", "rows": 1}
