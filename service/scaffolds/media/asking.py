"""What is asked of media services, and what their answers must be. Pure: whoever performs a request resumes the generator.

Part of the program ``ws-media`` (:mod:`.inside`), which runs on any Python from 3.9 on with the standard library alone. Services speak
OpenAI's shapes: ``images/generations``, ``audio/speech``, ``audio/transcriptions``, and ``videos`` as a polled job.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Generator
from typing import Any, NamedTuple, cast

MIB = 1 << 20
PROMPT_CHARS = 32_000
SPOKEN_CHARS = 100_000
AUDIO_BYTES = 25 * MIB
"""Of a recording that is to be transcribed."""
ANSWER_BYTES = MIB
IMAGE_BYTES, SPEECH_BYTES, VIDEO_BYTES = 32 * MIB, 64 * MIB, 128 * MIB
JOB_S = 1800
"""Longest wait for a video."""
KINDS = {
    "image": {"png": rb"\x89PNG\r\n\x1a\n", "jpeg": rb"\xff\xd8\xff", "webp": rb"RIFF....WEBP", "gif": rb"GIF8"},
    "speech": {"wav": rb"RIFF....WAVE", "mp3": rb"ID3|\xff[\xe2-\xff]", "ogg": rb"OggS", "flac": rb"fLaC"},
    "video": {"mp4": rb"....ftyp", "webm": rb"\x1a\x45\xdf\xa3", "avi": rb"RIFF....AVI "},
}
_JOB = re.compile(r"[A-Za-z0-9_-]{1,200}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?")


class MediaError(Exception):
    """``type`` is a stable word, ``str()`` is for whoever asked."""

    def __init__(self, type: str, detail: str) -> None:
        super().__init__(detail)
        self.type = type


class Ask(NamedTuple):
    """A request to ``/services/<service>/<path>``. The answer has at most ``limit`` bytes, or is no answer."""

    service: str
    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"
    limit: int = ANSWER_BYTES


class Pause(NamedTuple):
    seconds: float


class Told(NamedTuple):
    status: int
    body: bytes


class Made(NamedTuple):
    """``data`` is for a file; of a transcript, ``text`` is the transcript itself."""

    data: bytes
    kind: str
    text: str


Steps = Generator["Ask | Pause", "Told | None", Made]
Fields = dict[str, Any]


def image(prompt: str, fields: Fields) -> Steps:
    """``fields``: further members of the body (model, size, quality …), as for all that follows."""
    body = {**fields, "prompt": _text("prompt", prompt, PROMPT_CHARS), "n": 1}
    # Base64 is a third longer than what it holds.
    told = yield Ask("images", "POST", "images/generations", _json(body), limit=IMAGE_BYTES * 4 // 3 + ANSWER_BYTES)
    found = _object(told).get("data")
    first = cast("list[Any]", found)[0] if isinstance(found, list) and found else None
    coded = cast("Fields", first).get("b64_json") if isinstance(first, dict) else None
    if not isinstance(coded, str):
        raise MediaError("media_by_link", "the service answers with no picture, or with a link: ask it for b64_json")
    try:
        data = base64.b64decode(coded, validate=True)
    except ValueError:
        raise MediaError("media_unreadable", "the picture's base64 cannot be read") from None
    return _made("image", data)


def speech(text: str, fields: Fields) -> Steps:
    body = {"voice": "alloy", "response_format": "wav", **fields, "input": _text("text", text, SPOKEN_CHARS)}
    told = yield Ask("speech", "POST", "audio/speech", _json(body), limit=SPEECH_BYTES)
    return _made("speech", _good(told))


def video(prompt: str, fields: Fields, *, every_s: float = 5.0) -> Steps:
    """A job: begun, looked at until it has ended, fetched."""
    body = _json({**fields, "prompt": _text("prompt", prompt, PROMPT_CHARS)})
    job = _object((yield Ask("video", "POST", "videos", body)))
    name = job.get("id")
    if not isinstance(name, str) or not _JOB.fullmatch(name):
        raise MediaError("media_unreadable", "the service names no job")
    waited = 0.0
    while job.get("status") in ("queued", "in_progress"):
        if waited > JOB_S:
            raise MediaError("media_timeout", f"the video is not ready after {JOB_S} s")
        yield Pause(every_s)
        waited += every_s
        job = _object((yield Ask("video", "GET", f"videos/{name}")))
    if job.get("status") != "completed":
        raise MediaError("media_failed", f"the video failed: {_reason(job)}")
    return _made("video", _good((yield Ask("video", "GET", f"videos/{name}/content", limit=VIDEO_BYTES))))


def transcribe(name: str, audio: bytes, fields: Fields) -> Steps:
    if not audio or len(audio) > AUDIO_BYTES:
        raise MediaError("media_too_large" if audio else "media_empty", f"a recording has 1 to {AUDIO_BYTES} bytes")
    language = fields.get("language")
    if language is not None and not _LANGUAGE.fullmatch(str(language)):
        raise MediaError("bad_language", "a language is a code such as en or pt-BR")
    body, content_type = _form({"response_format": "json", **fields}, name, audio)
    found = _object((yield Ask("transcription", "POST", "audio/transcriptions", body, content_type))).get("text")
    if not isinstance(found, str):
        raise MediaError("media_unreadable", "the service's answer has no text")
    return Made(found.encode("utf-8", "replace"), "txt", found)


def _text(what: str, value: str, most: int) -> str:
    if not value.strip() or len(value) > most:
        raise MediaError("bad_text", f"{what}: 1 to {most} characters")
    return value


def _json(body: Fields) -> bytes:
    return json.dumps(body).encode()


def _good(told: Told | None) -> bytes:
    assert told is not None
    if told.status >= 400 or not told.body:
        raise MediaError("service_refused", f"status {told.status}: {_said(told.body)}")
    return told.body


def _object(told: Told | None) -> Fields:
    try:
        found = json.loads(_good(told))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MediaError("media_unreadable", "the service's answer is no JSON object")
    return cast("Fields", found)


def _said(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        return f"{error.get('code') or error.get('type')}: {str(error.get('message'))[:500]}"
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return body[:300].decode("utf-8", "replace")


def _reason(job: Fields) -> str:
    error = job.get("error")
    return str(cast("Fields", error).get("message") if isinstance(error, dict) else job.get("status"))[:500]


def _made(family: str, data: bytes) -> Made:
    """What is no picture, sound or film is not written as one: an error page, a login form."""
    most = {"image": IMAGE_BYTES, "speech": SPEECH_BYTES, "video": VIDEO_BYTES}[family]
    if len(data) > most:
        raise MediaError("media_too_large", f"more than {most} bytes")
    for kind, magic in KINDS[family].items():
        if re.match(magic, data[:16], re.DOTALL):
            return Made(data, kind, f"{kind}, {len(data)} bytes")
    raise MediaError("media_unreadable", f"the service's answer is no {family} that is known")


def _form(fields: Fields, name: str, audio: bytes) -> tuple[bytes, str]:
    """Return the body of a form and its type. Values are one line each, so that none can begin a part of its own."""
    mark = "ws-media-" + secrets.token_hex(16)
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-100:] or "audio"
    parts = [
        f'--{mark}\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in ((key, " ".join(str(one).split())) for key, one in fields.items())
    ]
    parts.append(
        f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="{clean}"\r\n'
        "content-type: application/octet-stream\r\n\r\n"
    )
    end = f"\r\n--{mark}--\r\n"
    return "".join(parts).encode() + audio + end.encode(), f"multipart/form-data; boundary={mark}"
