"""``ws-media``: pictures, speech, video and transcripts for programs in the sandbox, through the run's media services.

Runs on any Python from 3.9 on with the standard library and :mod:`.asking` alone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import stat
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from service.scaffolds.media import asking

TOKEN = "WORKSTEAD_RUN_TOKEN"  # noqa: S105 - a name
FIELDS = "WORKSTEAD_MEDIA"
GATEWAY = "http://127.0.0.1/services/"
IDLE_S = 660
PIECE = 1 << 16


def main(argv: list[str]) -> int:
    """Return the exit code: 0 done, 1 the service or the budget refused, 2 wrong arguments or files."""
    given = parser().parse_args(argv)
    try:
        made = perform(steps_of(given), token())
        if given.output:
            write(given.output, made.data)
    except asking.MediaError as error:
        sys.stderr.write("ws-media: %s: %s\n" % (error.type, error))
        return 1
    except OSError as error:
        sys.stderr.write("ws-media: bad_file: %s: %s\n" % (error.filename or "", error.strerror or error))
        return 2
    said = (
        made.text
        if given.command == "transcribe" and not given.output
        else "wrote %s to %s" % (made.kind, given.output)
    )
    sys.stdout.write(said + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="ws-media", description="Make pictures, speech and video; write down speech.")
    commands = top.add_subparsers(dest="command", required=True)
    for name, what, text in (
        ("image", "make a picture (png, jpeg, webp or gif)", "PROMPT"),
        ("speech", "speak a text", "TEXT"),
        ("video", "make a video; takes minutes", "PROMPT"),
    ):
        one = commands.add_parser(name, help=what)
        one.add_argument("text", metavar=text, help="'-' reads it from standard input")
        one.add_argument("-o", "--output", required=True, help="file to write")
        add_fields(one, {"image": ("size",), "speech": ("voice", "format"), "video": ("size", "seconds")}[name])
    one = commands.add_parser("transcribe", help="write down what a recording says")
    one.add_argument("file")
    one.add_argument("-o", "--output", help="file to write; default: standard output")
    add_fields(one, ("language",))
    return top


def add_fields(one: argparse.ArgumentParser, names: tuple[str, ...]) -> None:
    for name in ("model", *names):
        one.add_argument("--" + name)


def steps_of(given: argparse.Namespace) -> Any:
    named = {n: getattr(given, n, None) for n in ("model", "size", "voice", "seconds", "language")}
    named["response_format"] = getattr(given, "format", None)
    asked = {name: value for name, value in named.items() if value is not None}
    if given.command == "transcribe":
        return asking.transcribe(os.path.basename(given.file), read(given.file), {**defaults("transcription"), **asked})
    text = sys.stdin.read(asking.SPOKEN_CHARS + 1) if given.text == "-" else given.text
    service = "images" if given.command == "image" else given.command
    return getattr(asking, given.command)(text, {**defaults(service), **asked})


def defaults(service: str) -> dict[str, Any]:
    """Return the members of the body that the agent's settings give, such as the model."""
    try:
        return dict(json.loads(os.environ.get(FIELDS) or "{}").get(service) or {})
    except (ValueError, AttributeError, TypeError):
        return {}


def token() -> str:
    """Some programs hide what looks like a secret from the commands that they start: then a parent still has it."""
    found = os.environ.get(TOKEN) or ""
    pid = os.getppid()
    while not found and pid > 0:
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                pairs = [entry.partition(b"=") for entry in file.read(1 << 20).split(b"\0")]
            with open("/proc/%d/stat" % pid, "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
        found = next((value.decode("ascii", "replace") for name, _, value in pairs if name == TOKEN.encode()), "")
    if not found:
        raise asking.MediaError("no_token", "%s is not set" % TOKEN)
    return found


def perform(steps: Any, token: str) -> Any:
    """Do what the generator asks for until it has made something. Raises MediaError."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    told = None
    while True:
        try:
            step = steps.send(told)
        except StopIteration as end:
            return end.value
        told = None
        if isinstance(step, asking.Pause):
            time.sleep(step.seconds)
        else:
            told = ask(opener, step, token)


def ask(opener: urllib.request.OpenerDirector, step: Any, token: str) -> Any:
    url = GATEWAY + step.service + "/" + step.path
    request = urllib.request.Request(url, method=step.method)  # noqa: S310 - the gateway
    request.add_header("authorization", "Bearer " + token)
    if step.body:
        request.data = step.body
        request.add_header("content-type", step.content_type)
    try:
        with opener.open(request, timeout=IDLE_S) as answer:
            return asking.Told(answer.status, bounded(answer, step.limit))
    except urllib.error.HTTPError as error:
        with error:
            return asking.Told(error.code, error.read(asking.ANSWER_BYTES))
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise asking.MediaError("gateway_away", "no answer from service %s: %s" % (step.service, reason)) from None


def bounded(answer: Any, limit: int) -> bytes:
    data = bytearray()
    while piece := answer.read(PIECE):
        data += piece
        if len(data) > limit:
            raise asking.MediaError("media_too_large", "the answer has more than %d bytes" % limit)
    return bytes(data)


def read(path: str) -> bytes:
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise asking.MediaError("bad_file", "%s is no regular file" % path)
        return file.read(asking.AUDIO_BYTES + 1)


def write(path: str, data: bytes) -> None:
    """Whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    new = "%s.new-%d" % (path, os.getpid())
    with open(new, "wb") as file:
        file.write(data)
    os.replace(new, path)
