"""One request ``perform``: the actions in order, rest, and a picture."""

# pyright: reportMissingModuleSource=false
import time
from collections.abc import Mapping
from typing import Any, cast

import fields
from actions import Desk, Doer, Told
from album import Album, Wanted, wanted
from cursor import Cursor
from encode import Format
from faults import Aborted, Failed, Refused
from PIL import Image
from screen import size_of
from settle import Rest
from shm import Capture

MOST_ACTIONS, MOST_DETAIL = 64, 500
MOST_QUIET_S, MOST_CAP_S = 10.0, 60.0
_FRAME_S, _PROMPT_S, _MOST_BUSY_S = 0.03, 0.3, 2.0
_NEW_S = 1.0
"""How old a window is before the screen can be at rest: LibreOffice loses the keys of its first second."""
_BEFORE = Wanted(Format("png"))


class Performer:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._capture = Capture(desk.link)
        self._cursor = Cursor(desk.link)

    def perform(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer and its body. Raises Refused, ServerGone."""
        began = time.monotonic()
        actions, settling, shot = _actions(request), _settle(request), _shot(request)
        album = Album(self._desk.link, self._capture, self._cursor)
        if request.get("before") is True:
            _keep(album, "before", _BEFORE)
        known = set(self._desk.windows.numbers())
        doer = Doer(self._desk, album, shot or Wanted())
        results, windows = self._do(doer, actions)
        aborted = self._desk.pause.aborted
        settled = self._settle(*settling, known) if settling and not aborted else None
        if shot and not self._desk.pause.aborted:
            _keep(album, "shot", shot)
        if self._desk.pause.aborted:
            self._desk.hands.release_all()
        answer = {
            "state": self._state(settled, windows),
            "results": results,
            "images": album.listed(),
            "took_s": round(time.monotonic() - began, 4),
        }
        return answer, [one.data for _, one in album.pictures]

    def _do(self, doer: Doer, actions: list[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        results, windows = list[dict[str, Any]](), list[dict[str, Any]]()
        self._desk.pointer.begin()
        for index, action in enumerate(actions):
            try:
                self._desk.pause.check()
                told = doer.do(action)
            except Failed as failed:
                results.append({"index": index, "error": failed.word, "detail": failed.detail[:MOST_DETAIL]})
                break
            windows = told.windows if told.windows is not None else windows
            results.append({"index": index, **_words(told)})
        return results, windows

    def _settle(self, quiet_s: float, cap_s: float, known: set[int]) -> bool:
        """``known``: the windows from before the batch."""
        until, newest = time.monotonic() + cap_s, 0.0
        try:
            rest = Rest(self._screen(), time.monotonic(), quiet_s)
            while time.monotonic() < until:
                self._desk.pause.wait(_FRAME_S)
                if appeared := set(self._desk.windows.numbers()) - known:
                    known |= appeared
                    newest = time.monotonic()
                if rest.see(self._screen(), time.monotonic()) and time.monotonic() - newest >= _NEW_S:
                    if self._serves(until):
                        return True
                    rest = Rest(self._screen(), time.monotonic(), quiet_s)
        except (Aborted, Failed):
            return False
        return False

    def _serves(self, until: float) -> bool:
        """A program that is quiet because it is busy takes no input yet: that is no rest."""
        asked = time.monotonic()
        served = self._desk.windows.serves(self._desk.pause, min(_MOST_BUSY_S, max(0.0, until - asked)))
        return served and time.monotonic() - asked < _PROMPT_S

    def _screen(self) -> Image.Image:
        return self._capture.grab((0, 0, *size_of(self._desk.link)))

    def _state(self, settled: bool | None, windows: list[dict[str, Any]]) -> dict[str, Any]:
        width, height = size_of(self._desk.link)
        x, y = self._desk.pointer.at()
        title = self._desk.windows.active_title()
        return {
            "width": width,
            "height": height,
            "cursor_x": x,
            "cursor_y": y,
            "title": title,
            "windows": windows,
            "held": self._desk.hands.held,
            "settled": settled,
        }


def _keep(album: Album, role: str, how: Wanted) -> None:
    """A picture that is too large is lacking; the host sees that."""
    try:
        album.take(role, how)
    except Failed:
        return


def _words(told: Told) -> dict[str, Any]:
    return {"text": told.text} | ({} if told.image is None else {"image": told.image})


def _actions(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    value = request.get("actions", [])
    if not isinstance(value, list) or len(cast("list[object]", value)) > MOST_ACTIONS:
        raise Refused(f"actions are a list of at most {MOST_ACTIONS}")
    if not all(isinstance(one, dict) for one in cast("list[object]", value)):
        raise Refused("an action is an object")
    return cast("list[Mapping[str, Any]]", value)


def _settle(request: Mapping[str, Any]) -> tuple[float, float] | None:
    try:
        found = fields.part(request, "settle")
        if found is None:
            return None
        return fields.seconds(found, "quiet_s", MOST_QUIET_S, 0.4), fields.seconds(found, "cap_s", MOST_CAP_S, 8.0)
    except Failed as failed:
        raise Refused(failed.detail) from failed


def _shot(request: Mapping[str, Any]) -> Wanted | None:
    try:
        found = fields.part(request, "shot")
        return None if found is None else wanted(found)
    except Failed as failed:
        raise Refused(failed.detail) from failed
