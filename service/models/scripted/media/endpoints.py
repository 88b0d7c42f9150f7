"""``images/generations``, ``audio/speech``, ``audio/transcriptions``, and ``videos`` as a job that is done when it has
been looked at twice. A text with ``[refuse]`` is refused as a provider's moderation does it."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from service.models.scripted import outgoing
from service.models.scripted.dialects import chat
from service.models.scripted.exchanges import Exchange, Log
from service.models.scripted.media import files
from service.models.scripted.outgoing import Outgoing
from service.models.scripted.values import mapping, text

LOOKS = 2
_VIDEO = re.compile(r"/videos/video_([0-9]{1,3})_([0-9a-f]{16})(/content)?$")
_SIZE = re.compile(r"([0-9]{1,5})x([0-9]{1,5})")
_REFUSE = "[refuse]"


def respond(exchange: Exchange, log: Log) -> Outgoing | None:
    """Return the answer; null where the path is none of these."""
    job = _VIDEO.search(exchange.path) if exchange.method == "GET" else None
    ends = [end for end in _POSTED if exchange.path.endswith(f"/{end}") and exchange.method == "POST"]
    if job is None and not ends:
        return None
    if not exchange.credential:
        return outgoing.whole(chat.error(401, "no credential"), 401)
    if job is not None:
        return _job(int(job.group(1)), job.group(2), bool(job.group(3)), exchange, log)
    if ends[0] == "audio/transcriptions":
        return _transcript(exchange)
    try:
        body = mapping(json.loads(exchange.body))
    except ValueError:
        return outgoing.whole(chat.error(400, "the body is no JSON"), 400)
    exchange.model = text(body.get("model"))
    asked = text(body.get("prompt")) or text(body.get("input"))
    if not asked or _REFUSE in asked:
        return outgoing.whole(chat.error(400, "moderation_blocked: no" if asked else "no text"), 400)
    return _POSTED[ends[0]](body, asked)


def _image(body: Mapping[str, Any], prompt: str) -> Outgoing:
    size = _SIZE.fullmatch(text(body.get("size")))
    width, height = (int(size.group(1)), int(size.group(2))) if size else (64, 64)
    count = body.get("n") if isinstance(body.get("n"), int) else 1
    data = [
        {"b64_json": base64.b64encode(files.png(width, height, prompt)).decode()} for _ in range(min(count or 1, 10))
    ]
    return outgoing.whole({"created": 1, "data": data})


def _speech(body: Mapping[str, Any], spoken: str) -> Outgoing:
    del body
    return Outgoing(200, [files.wav(spoken)], "audio/wav")


def _begin_video(body: Mapping[str, Any], prompt: str) -> Outgoing:
    seconds = str(body.get("seconds") or "4")
    seconds = seconds if re.fullmatch("[0-9]{1,3}", seconds) else "4"
    name = f"video_{seconds}_{hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
    return outgoing.whole({"id": name, "object": "video", "status": "queued", "progress": 0, "seconds": seconds})


def _job(seconds: int, seed: str, content: bool, exchange: Exchange, log: Log) -> Outgoing:
    if content:
        return Outgoing(200, [files.avi(seconds, seed)], "video/x-msvideo")
    done = log.count(exchange.credential, "video", seed) >= LOOKS - 1
    status = {"status": "completed" if done else "in_progress", "progress": 100 if done else 50}
    return outgoing.whole({"id": exchange.path.rsplit("/", 1)[1], "object": "video", **status})


def _transcript(exchange: Exchange) -> Outgoing:
    head = f"content-type: {exchange.headers.get('content-type', '')}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + exchange.body)
    for part in form.iter_parts() if form.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == "file":
            recording = part.get_payload(decode=True)
            assert isinstance(recording, bytes)
            found = files.said(recording)
            return outgoing.whole({"text": found if found is not None else f"A recording of {len(recording)} bytes."})
    return outgoing.whole(chat.error(400, "no file"), 400)


_POSTED: Mapping[str, Any] = {
    "images/generations": _image,
    "audio/speech": _speech,
    "audio/transcriptions": _transcript,
    "videos": _begin_video,
}
