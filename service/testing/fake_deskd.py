"""A stand-in for deskd, for tests that need no screen: it speaks the wire, and draws one colour that changes with every act.

A program of its own (``python3 -I fake_deskd.py --surface … --size …``, standard library only). What it "types" it keeps in
``fake-screen.json`` of its working folder, so that a second one finds the same screen. Text that begins with ``!`` makes it
misbehave: see ``MISDEEDS``.
"""

import json
import os
import struct
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATE = Path("fake-screen.json")
START = Path("fake-deskd-start")
"""``fatal``: it says that there is no screen; ``silent``: it says nothing."""
SIZES = struct.Struct(">II")
STOPPABLE = ("wait", "hold_key")
_writing = threading.Lock()
_stop = threading.Event()
_busy = threading.Event()


def send(head: dict[str, Any], body: bytes = b"") -> None:
    text = json.dumps(head).encode()
    raw(SIZES.pack(len(text), len(body)) + text + body)


def raw(data: bytes) -> None:
    with _writing:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def png(width: int, height: int, colour: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + colour.to_bytes(3, "big") * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def webp(width: int, height: int, colour: int) -> bytes:
    """Lossless: five codes of one symbol each, so that no pixel takes a bit."""
    bits, count = 0x2F, 8
    symbols = (colour >> 8 & 255, colour >> 16, colour & 255, 255, 0)  # green, red, blue, alpha, distance
    fields = [(width - 1, 14), (height - 1, 14), (0, 7), *((5 | symbol << 3, 11) for symbol in symbols)]
    for value, length in fields:
        bits |= value << count
        count += length
    data = bits.to_bytes((count + 7) // 8, "little")
    chunk = b"VP8L" + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def jpeg(width: int, height: int, colour: int) -> bytes:
    """Its head and a comment: nothing to decode."""
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0"
    said = colour.to_bytes(3, "big")
    return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xfe\0\x05" + said + b"\xff\xd9"


ENCODERS = {"png": png, "webp": webp, "jpeg": jpeg}


def _impersonate(request: dict[str, Any]) -> None:
    send({"id": request["id"] + 1000, "state": {}, "results": [], "images": []})


def _lie(request: dict[str, Any]) -> None:
    data = png(8, 8, 0)
    picture = {"role": "shot", "format": "png", "width": 1280, "height": 800, "bytes": len(data)}
    send({"id": request["id"], "state": {"width": 8, "height": 8}, "results": [], "images": [picture]}, data)


def _go_on(request: dict[str, Any]) -> None:
    """Answer, and when that was heard begin a frame that nobody asked for."""
    send({"id": request["id"], "error": {"type": "internal", "detail": "more follows"}})
    threading.Event().wait(0.2)
    raw(SIZES.pack(2, 1 << 20))


MISDEEDS: dict[str, Callable[[dict[str, Any]], object]] = {
    "!die": lambda _: os._exit(9),
    "!hang": lambda _: threading.Event().wait(),
    "!garbage": lambda _: raw(b"\xff" * 64),
    "!nojson": lambda _: raw(SIZES.pack(3, 0) + b"{[}"),
    "!giant": lambda _: raw(SIZES.pack(2, (1 << 32) - 1) + b"{}"),
    "!imposter": _impersonate,
    "!lie": _lie,
    "!chatter": _go_on,
    "!fault": lambda request: send({"id": request["id"], "error": {"type": "internal", "detail": "as it was told"}}),
}


class Screen:
    def __init__(self, width: int, height: int) -> None:
        self.kept: dict[str, Any] = {"width": width, "height": height, "x": 0, "y": 0, "text": "", "acts": 0}
        if STATE.exists():
            self.kept |= json.loads(STATE.read_text())
        self.held: list[str] = []
        self.clipboard = ""

    def picture(self, role: str, format: str, size: dict[str, int] | None = None) -> tuple[dict[str, Any], bytes]:
        width, height = (size or self.kept)["width"], (size or self.kept)["height"]
        data = ENCODERS[format](width, height, zlib.crc32(json.dumps(self.kept).encode()) & 0xFFFFFF)
        return {"role": role, "format": format, "width": width, "height": height, "bytes": len(data)}, data

    def state(self, settled: bool | None) -> dict[str, Any]:
        place = {"cursor_x": self.kept["x"], "cursor_y": self.kept["y"], "title": self.kept["text"][-40:]}
        size = {"width": self.kept["width"], "height": self.kept["height"]}
        return {**size, **place, "held": self.held, "settled": settled}

    def act(self, action: dict[str, Any]) -> tuple[str, str, str]:
        """Return error, detail and text; both empty if all is well."""
        kind = action["type"]
        if kind in ("mouse_down", "drag", "key_down"):
            self.held.append("left" if kind != "key_down" else action["keys"][0])
        if kind in STOPPABLE and _stop.wait(action.get("seconds", 0)):
            self.held.clear()
            return "aborted", "the host stopped it", ""
        if kind in ("mouse_up", "drag", "key_up", "release_all"):
            self.held.clear()
        if action.get("x") is not None:
            if action["x"] >= self.kept["width"] or action["y"] >= self.kept["height"]:
                return "out_of_bounds", f"{action['x']},{action['y']}", ""
            self.kept |= {"x": action["x"], "y": action["y"]}
        if "no_such_key" in action.get("keys", []):
            return "unknown_key", "no_such_key", ""
        return "", "", self._rest(kind, action)

    def _rest(self, kind: str, action: dict[str, Any]) -> str:
        if kind == "type":
            self.kept["text"] += action.get("text", "")
        elif kind == "clipboard_write":
            self.clipboard = action.get("text", "")
        elif kind == "resize":
            self.kept |= action["size"]
        self.kept["acts"] += kind not in ("screenshot", "zoom", "wait", "cursor_position", "windows")
        return {"clipboard_read": self.clipboard, "cursor_position": f"{self.kept['x']},{self.kept['y']}"}.get(kind, "")


def perform(screen: Screen, request: dict[str, Any]) -> None:
    # All of a batch's pictures in one format: what nothing changed on is the same picture before and after.
    format = (request["shot"] or {"format": "png"})["format"]
    images = [screen.picture("before", format)] if request["before"] else []
    results: list[dict[str, Any]] = []
    shown = 0
    for index, action in enumerate(request["actions"]):
        misdeed = MISDEEDS.get(action.get("text", ""))
        if misdeed is not None:
            if misdeed is not MISDEEDS["!hang"]:
                _busy.clear()
            misdeed(request)
            return
        error, detail, text = screen.act(action)
        result = {"index": index, "text": text} | ({"error": error, "detail": detail} if error else {})
        if action["type"] in ("screenshot", "zoom"):
            result["image"], shown = shown, shown + 1
            images.append(screen.picture("action", format, action.get("size")))
        results.append(result)
        if error:
            break
    STATE.write_text(json.dumps(screen.kept))
    shot = request["shot"]
    if shot is not None:
        images.append(screen.picture("shot", shot["format"], shot["size"]))
    answer = {
        "id": request["id"],
        "state": screen.state(request["settle"] and True),
        "results": results,
        "took_s": 0.01,
    }
    _busy.clear()  # before the answer: the next request may follow at once
    send({**answer, "images": [head for head, _ in images]}, b"".join(data for _, data in images))


def read() -> dict[str, Any] | None:
    lengths = sys.stdin.buffer.read(SIZES.size)
    if len(lengths) < SIZES.size:
        return None
    head, _ = SIZES.unpack(lengths)
    found: dict[str, Any] = json.loads(sys.stdin.buffer.read(head))
    return found


def main(arguments: list[str]) -> None:
    width, _, height = arguments[arguments.index("--size") + 1].partition("x")
    screen = Screen(int(width), int(height))
    start = START.read_text() if START.exists() else ""
    if start == "fatal":
        send({"fatal": {"type": "no_x_server", "detail": "as it was told"}})
        return
    if start != "silent":
        send(
            {"hello": {"protocol": 1, "width": screen.kept["width"], "height": screen.kept["height"], "ready_s": 0.01}}
        )
    while (request := read()) is not None:
        if request["do"] == "perform" and _busy.is_set():
            send({"id": request["id"], "error": {"type": "busy", "detail": "one at a time"}})
        elif request["do"] == "perform":
            _stop.clear()
            _busy.set()
            threading.Thread(target=perform, args=(screen, request), daemon=True).start()
        else:
            _stop.set()
            send({"id": request["id"], "ok": True})
    Path("fake-deskd-goodbye").write_text("every key was let go")


if __name__ == "__main__":
    main(sys.argv[1:])
