"""The keyboard: names and characters to key codes of the live map, with spare codes for what the map lacks.

Programs read the map when they are told that it changed, and late: a code that gets another meaning while presses of it are
still on their way gives wrong characters. So codes are bound in one go, and before one that was used is bound anew the
program says that it has caught up (or, where it cannot say so, ``REUSE_S`` pass).
"""

# pyright: reportMissingModuleSource=false
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import keys as names
from faults import Failed
from pause import Pause
from release import Hands
from windows import Windows
from Xlib import XK, X
from Xlib.display import Display
from xlink import remapped, root_of

FIRST_SPARE: Final = 186
"""Chromium ignores spare codes below, or takes them for keys of its own (it really reloads the page)."""
SEARCH: Final = 225
"""Takes Chromium to its address line, whatever it means."""
ROOM: Final = 48
BOUND_S, REUSE_S, STROKE_S = 0.05, 1.0, 0.008
_GROUP = 32
_SHIFT, _CAPS = 0xFFE1, 0xFFE5

for _group in ("xf86", "xkb", "publishing", "technical", "special", "currency"):
    with suppress(ImportError):
        XK.load_keysym_group(_group)
_EXACT: Final[dict[str, int]] = {
    name[3:]: value for name, value in vars(XK).items() if name.startswith("XK_") and isinstance(value, int)
}
_LOOSE: Final[dict[str, int]] = {}
for _name, _value in _EXACT.items():
    if len(_name) > 1:
        _LOOSE.setdefault(names.squeezed(_name), _value)


def keysym_of(key: str) -> int:
    """Raises Failed ``unknown_key``."""
    if len(key) == 1:
        return names.of_character(key)
    name = names.canonical(key)
    found = _EXACT.get(name) or _EXACT.get(name.replace("XF86", "XF86_")) or _LOOSE.get(names.squeezed(name))
    if not found:
        raise Failed("unknown_key", f"no key is called {key!r}")
    return found


class Keyboard:
    def __init__(self, link: Display, hands: Hands, windows: Windows, pause: Pause) -> None:
        self._link, self._hands, self._windows, self._pause = link, hands, windows, pause
        self._first = link.display.info.min_keycode
        self._used: dict[int, float] = {}
        self._taken = 0.0
        """Presses until then have reached their programs."""
        self._spare: list[int] = []
        self._where: dict[int, tuple[int, bool]] = {}
        """Of a keysym: the key's code, and whether Shift is needed."""
        self._fixed: set[int] = set()
        """Those whose key is none of the spare ones."""
        self._read()

    def chord(self, keys: Sequence[str]) -> list[tuple[int, str]]:
        """Return the codes to press for keys together, in order, Shift among them where a character needs it."""
        keysyms = [keysym_of(key) for key in keys]
        self._ready(keysyms)
        pressed = list[tuple[int, str]]()
        for keysym, key in zip(keysyms, keys, strict=True):
            code, shifted = self._at(keysym)
            shift = self._at(_SHIFT)[0]
            if shifted and all(code != shift for code, _ in pressed):
                pressed.append((shift, "Shift_L"))
            pressed.append((code, key))
        return pressed

    def press(self, keys: Sequence[str], times: int = 1) -> None:
        chord = self.chord(keys)
        for _ in range(times):
            self._pause.check()
            with self._hands.holding(chord):
                self._link.flush()
                self._pause.wait(STROKE_S)
            self._pause.wait(STROKE_S)
        self._link.sync()

    def hold(self, keys: Sequence[str], seconds: float) -> None:
        with self._hands.holding(self.chord(keys)):
            self._link.flush()
            self._pause.wait(seconds)

    def down(self, keys: Sequence[str]) -> None:
        for code, name in self.chord(keys):
            self._hands.press(code, name)
        self._link.sync()

    def up(self, keys: Sequence[str]) -> None:
        for code, _ in reversed(self.chord(keys)):
            self._hands.let_go(code)
        self._link.sync()

    def type(self, text: str) -> None:
        keysyms = names.of_text(text)
        self._ready(())
        if root_of(self._link).query_pointer().mask & X.LockMask:
            self.press(["Caps_Lock"])
        for piece, needed in names.bursts(keysyms, self._fixed, min(ROOM, len(self._spare)) or 1):
            self._bind(needed)
            self._strike(piece)

    def _strike(self, keysyms: Sequence[int]) -> None:
        shift = self._at(_SHIFT)[0]
        for start in range(0, len(keysyms), _GROUP):
            self._pause.check()
            for keysym in keysyms[start : start + _GROUP]:
                code, shifted = self._at(keysym)
                with self._hands.holding([(shift, "Shift_L"), (code, "")] if shifted else [(code, "")]):
                    self._used[code] = time.monotonic()
            self._link.sync()

    def _at(self, keysym: int) -> tuple[int, bool]:
        if keysym not in self._where:
            raise Failed("unknown_key", "a program changed the keyboard's map meanwhile")
        return self._where[keysym]

    def _ready(self, needed: Sequence[int]) -> None:
        """Know the map as it is now, and have a code for each of these."""
        if remapped(self._link):
            self._read()
        self._bind([keysym for keysym in dict.fromkeys(needed) if keysym not in self._fixed])

    def _read(self) -> None:
        table = self._link.get_keyboard_mapping(self._first, 256 - self._first)
        self._where, self._fixed, self._spare = {}, set(), []
        for code, keysyms in enumerate(table, self._first):
            if code >= FIRST_SPARE and code != SEARCH and names.is_spare(keysyms):
                self._spare.append(code)
            else:
                self._fixed.update(keysym for keysym in keysyms[:2] if keysym)
            for shifted, keysym in enumerate(keysyms[:2]):
                if keysym:
                    self._where.setdefault(keysym, (code, bool(shifted)))

    def _bind(self, needed: Sequence[int]) -> None:
        """Have a spare key for each of these at once."""
        lacking = [keysym for keysym in needed if keysym not in self._where]
        if not lacking:
            return
        taken = {self._where[keysym][0] for keysym in needed if keysym in self._where}
        free = [code for code in self._spare if code not in taken]
        chosen = sorted(free, key=lambda code: self._used.get(code, 0.0))[: len(lacking)]
        if len(chosen) < len(lacking):
            raise Failed("unknown_key", "the keyboard has no key left for it")
        self._let_programs_take(chosen)
        width = 4
        table = dict(zip(chosen, lacking, strict=True))
        for first, run in _runs(sorted(table)):
            self._link.change_keyboard_mapping(first, [(table[code],) * width for code in run])
        self._link.sync()
        self._let_programs_learn()
        remapped(self._link)
        self._read()

    def _let_programs_learn(self) -> None:
        """The first answer says that the active program was told of the new map, the second that it has asked for it."""
        self._pause.wait(BOUND_S)
        if self._windows.caught_up(self._pause):
            self._windows.caught_up(self._pause)

    def _let_programs_take(self, codes: Sequence[int]) -> None:
        latest = max(self._used.get(code, 0.0) for code in codes)
        if latest > self._taken and not self._windows.caught_up(self._pause):
            self._pause.wait(max(0.0, latest + REUSE_S - time.monotonic()))
        self._taken = max(self._taken, latest)


def _runs(codes: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Group neighbours: each change of the map is told to every client."""
    found = list[tuple[int, list[int]]]()
    for code in codes:
        if found and found[-1][1][-1] == code - 1:
            found[-1][1].append(code)
        else:
            found.append((code, [code]))
    return found
