"""The clipboard, both ways. Its owner may be anybody: what it gives is bounded in bytes and in time.

What is written belongs to us from then on: a thread with a connection of its own serves it to whoever asks.
"""

# pyright: reportMissingModuleSource=false
import select
import threading
import time
from collections import deque
from typing import Any, Final

from faults import Failed, ServerGone
from pause import Pause
from Xlib import X, Xatom, error
from Xlib.display import Display
from Xlib.protocol import event
from Xlib.xobject.drawable import Window
from xlink import LOST, connect, events, root_of

MOST_BYTES: Final = 1 << 20
ANSWER_S: Final = 3.0
_PIECE: Final = 128 << 10
_MOST_ROUNDS: Final = 50
_POLL_S, _BETWEEN_S = 0.005, 0.2
_TEXTS = ("UTF8_STRING", "text/plain;charset=utf-8", "TEXT", "STRING", "text/plain")


def _window(link: Display, mask: int = 0) -> Window:
    return root_of(link).create_window(-10, -10, 1, 1, 0, X.CopyFromParent, event_mask=mask)


class Reader:
    def __init__(self, link: Display, pause: Pause) -> None:
        self._link, self._pause = link, pause
        self._events: deque[Any] = deque()

    def read(self) -> str:
        """Return the clipboard's text, empty where nobody owns it. Raises Failed."""
        selection = self._link.get_atom("CLIPBOARD")
        if not self._is_owned(selection):
            return ""
        window = _window(self._link, X.PropertyChangeMask)
        try:
            return self._convert(window, selection).decode(errors="replace")
        finally:
            self._events.clear()
            window.destroy()
            self._link.flush()

    def _is_owned(self, selection: int) -> bool:
        """Programs give it up for a moment before they take it anew."""
        until = time.monotonic() + _BETWEEN_S
        while self._link.get_selection_owner(selection) == X.NONE:
            if time.monotonic() > until:
                return False
            self._pause.wait(_POLL_S)
        return True

    def _convert(self, window: Window, selection: int) -> bytes:
        # The property's number is the selection's: any that nobody else uses on our own window will do.
        until = time.monotonic() + ANSWER_S
        window.convert_selection(selection, self._link.get_atom("UTF8_STRING"), selection, X.CurrentTime)
        answer = self._wait(X.SelectionNotify, window, until)
        if answer.property == X.NONE:
            raise Failed("clipboard_unavailable", "what was copied is no text")
        first = self._take(window, selection)
        if first.property_type != self._link.get_atom("INCR"):
            return bytes(first.value)
        return self._pieces(window, selection, until)

    def _pieces(self, window: Window, selection: int, until: float) -> bytes:
        """Piece by piece: each is put down when the one before was taken."""
        got = bytearray()
        while True:
            changed = self._wait(X.PropertyNotify, window, until)
            if changed.state != X.PropertyNewValue or changed.atom != selection:
                continue
            piece = self._take(window, selection)
            if not piece.value:
                return bytes(got)
            got += bytes(piece.value)
            if len(got) > MOST_BYTES:
                raise Failed("too_large", f"the clipboard holds more than {MOST_BYTES} bytes")

    def _take(self, window: Window, name: int) -> Any:
        found = window.get_property(name, X.AnyPropertyType, 0, MOST_BYTES // 4)
        if found is None:
            raise Failed("clipboard_unavailable", "its owner put down nothing")
        if found.bytes_after:
            raise Failed("too_large", f"the clipboard holds more than {MOST_BYTES} bytes")
        if found.format != 8 and found.property_type != self._link.get_atom("INCR"):
            raise Failed("clipboard_unavailable", "its owner gives no bytes")
        window.delete_property(name)
        self._link.flush()
        return found

    def _wait(self, kind: int, window: Window, until: float) -> Any:
        while time.monotonic() < until:
            self._events.extend(events(self._link))
            while self._events:
                seen = self._events.popleft()
                if seen.type == kind and (seen.requestor if kind == X.SelectionNotify else seen.window) == window:
                    return seen
            self._pause.wait(_POLL_S)
        raise Failed("clipboard_unavailable", f"its owner does not give it within {ANSWER_S:.0f} s")


class Owner:
    """Owns what was written last."""

    def __init__(self, display: str) -> None:
        self._link = connect(display)
        self._window = _window(self._link)
        self._lock = threading.Lock()
        self._text = b""
        self._selections = [self._link.get_atom("CLIPBOARD"), Xatom.PRIMARY]
        self._targets = {self._link.get_atom(name): name for name in ("TARGETS", "TIMESTAMP", *_TEXTS)}
        threading.Thread(target=self._serve, daemon=True).start()

    def write(self, text: str) -> None:
        """Raises Failed."""
        data = text.encode(errors="surrogatepass")
        if len(data) > MOST_BYTES:
            raise Failed("too_large", f"at most {MOST_BYTES} bytes fit into the clipboard")
        with self._lock:
            self._text = data
            for selection in self._selections:
                self._window.set_selection_owner(selection, X.CurrentTime)
            self._link.sync()
            owners = [self._link.get_selection_owner(selection) for selection in self._selections]
            # What came with these answers no longer wakes the other thread.
            self._serve_what_came()
        if owners[0] != self._window:
            raise Failed("clipboard_unavailable", "a program does not give the clipboard away")

    def _serve(self) -> None:
        try:
            while True:
                select.select([self._link.fileno()], [], [], None)
                with self._lock:
                    self._serve_what_came()
        except (ServerGone, *LOST):
            return

    def _serve_what_came(self) -> None:
        # However much others ask, whoever writes gets on.
        for _ in range(_MOST_ROUNDS):
            taken = events(self._link)
            if not taken:
                break
            for seen in taken:
                if seen.type == X.SelectionRequest:
                    self._answer(seen)

    def _answer(self, asked: Any) -> None:
        name = asked.property or asked.target
        try:
            given = self._put(asked.requestor, name, asked.target)
        except error.XError:
            given = False
        answer = event.SelectionNotify(
            time=asked.time,
            requestor=asked.requestor,
            selection=asked.selection,
            target=asked.target,
            property=name if given else X.NONE,
        )
        asked.requestor.send_event(answer)
        self._link.flush()

    def _put(self, window: Window, name: int, target: int) -> bool:
        wanted = self._targets.get(target)
        if wanted is None:
            return False
        if wanted == "TARGETS":
            window.change_property(name, Xatom.ATOM, 32, list(self._targets))
        elif wanted == "TIMESTAMP":
            window.change_property(name, Xatom.INTEGER, 32, [X.CurrentTime])
        else:
            kind = target if wanted != "TEXT" else self._link.get_atom("UTF8_STRING")
            # A request holds 256 KiB, a property as much as one likes.
            window.change_property(name, kind, 8, self._text[:_PIECE])
            for start in range(_PIECE, len(self._text), _PIECE):
                window.change_property(name, kind, 8, self._text[start : start + _PIECE], mode=X.PropModeAppend)
        return True
