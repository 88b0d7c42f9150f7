"""What can be done with a desktop, in one model that every provider's vocabulary is read into and written from.

Coordinates are pixels of the screen, from its upper left corner. Batches are done in order; two equal clicks in one batch
are kept 0.5 s apart, so that they do not become a double click; the first error ends a batch.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.domain.limits import GIB, KIB, MIB, Limits
from service.domain.tasks import Sha256, Strict

WIDTH, HEIGHT = 1280, 800
"""Of a screen unless the agent's settings say otherwise; no provider scales pictures of this size."""
LEAST_SIDE, MOST_SIDE = 320, 4096
MAX_ACTIONS = 64
"""Most actions of one batch."""
MAX_TEXT = 64 * KIB
"""Most characters typed by one action."""
MAX_CLIPBOARD = MIB
"""Most bytes (UTF-8) of the clipboard, in either direction."""
MAX_WAIT_S = 100.0
MAX_IMAGE_BYTES = 8 * MIB
"""Most bytes of one encoded picture."""
RESTLESS = "The picture had not come to rest: something on it still moves or loads."
"""Told to a model in a line of its own where :attr:`DesktopState.settled` is false: chance, of which replays know."""
NEEDS = Limits(
    memory_bytes=4 * GIB, cpus=1.0, pids=1024, disk_bytes=GIB, inodes=50_000, shm_bytes=256 * MIB
)  # fmt: skip
"""Least resources of a sandbox with a screen."""
IMAGE = "desktop"
"""The shipped image that has a screen."""
Coordinate = Annotated[int, Field(ge=0, lt=MOST_SIDE)]
Side = Annotated[int, Field(ge=1, le=MOST_SIDE)]
Key = Annotated[str, Field(min_length=1, max_length=40)]
"""A key as X names it (``Return``, ``Page_Up``, ``ctrl``, ``a``, ``é``); case does not matter for names of more than one
character, and the usual aliases are known (``ENTER``, ``ARROWUP``, ``cmd``, ``PgDn``)."""
Button = Literal["left", "middle", "right", "back", "forward"]


class ActionType(StrEnum):
    SCREENSHOT = "screenshot"
    ZOOM = "zoom"
    """The picture of ``region``, scaled to ``size`` (null: as large as fits the screen's size)."""
    CLICK = "click"
    """``button``, ``count`` (1 to 3), ``modifiers``; where the pointer is if x and y are null."""
    MOVE = "move"
    MOUSE_DOWN = "mouse_down"
    MOUSE_UP = "mouse_up"
    DRAG = "drag"
    """Along ``path`` with ``button`` held; one point: from where the pointer is."""
    SCROLL = "scroll"
    """``dx``, ``dy`` in clicks of the wheel, + is right and down."""
    KEY = "key"
    """Press ``keys`` together and let them go, ``repeat`` times."""
    KEY_DOWN = "key_down"
    KEY_UP = "key_up"
    HOLD_KEY = "hold_key"
    """Hold ``keys`` for ``seconds``."""
    TYPE = "type"
    WAIT = "wait"
    CURSOR_POSITION = "cursor_position"
    NAVIGATE = "navigate"
    """Bring the browser to the front, starting it where none runs, and open ``text``; empty: only bring it there."""
    CLIPBOARD_READ = "clipboard_read"
    CLIPBOARD_WRITE = "clipboard_write"
    WINDOWS = "windows"
    """The list of windows."""
    RESIZE = "resize"
    """Give the screen the ``size``."""
    RELEASE_ALL = "release_all"
    """Let go of every key and button that is held."""


LOOKS = frozenset(
    {
        *(ActionType.SCREENSHOT, ActionType.ZOOM, ActionType.CURSOR_POSITION),
        *(ActionType.CLIPBOARD_READ, ActionType.WINDOWS),
    }
)
"""Actions that change nothing."""


class Point(Strict):
    x: Coordinate
    y: Coordinate


class Size(Strict):
    width: Side
    height: Side


class Screen(Strict):
    """The size of a run's screen, in pixels."""

    width: Annotated[int, Field(ge=LEAST_SIDE, le=MOST_SIDE)] = WIDTH
    height: Annotated[int, Field(ge=LEAST_SIDE, le=MOST_SIDE)] = HEIGHT

    @property
    def size(self) -> Size:
        return Size(width=self.width, height=self.height)


class Region(Strict):
    """``x0 < x1``, ``y0 < y1``; the right and lower edges are not part of it."""

    x0: Annotated[int, Field(ge=0, le=MOST_SIDE)]
    y0: Annotated[int, Field(ge=0, le=MOST_SIDE)]
    x1: Annotated[int, Field(ge=0, le=MOST_SIDE)]
    y1: Annotated[int, Field(ge=0, le=MOST_SIDE)]

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        if self.x0 >= self.x1 or self.y0 >= self.y1:
            raise ValueError("a region has x0 < x1 and y0 < y1")
        return self


class Raw(Strict):
    """The action as its provider's vocabulary has it."""

    vocabulary: Annotated[str, Field(max_length=80)]
    payload: dict[str, Any]


class DesktopAction(Strict):
    """One action. Fields that its type does not use keep their defaults."""

    type: ActionType
    x: Coordinate | None = None
    y: Coordinate | None = None
    button: Button = "left"
    count: Annotated[int, Field(ge=1, le=3)] = 1
    modifiers: Annotated[list[Key], Field(max_length=8)] = Field(default_factory=list[str])
    """Keys held while it is done."""
    path: Annotated[list[Point], Field(max_length=256)] = Field(default_factory=list[Point])
    dx: Annotated[int, Field(ge=-100, le=100)] = 0
    dy: Annotated[int, Field(ge=-100, le=100)] = 0
    keys: Annotated[list[Key], Field(max_length=16)] = Field(default_factory=list[str])
    repeat: Annotated[int, Field(ge=1, le=100)] = 1
    seconds: Annotated[float, Field(ge=0, le=MAX_WAIT_S, allow_inf_nan=False)] = 0.0
    text: Annotated[str, Field(max_length=MAX_CLIPBOARD)] = ""
    region: Region | None = None
    size: Size | None = None
    intent: Annotated[str, Field(max_length=2000)] = ""
    """Why, in the model's words."""
    raw: Raw | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if (self.x is None) != (self.y is None):
            raise ValueError("x and y are given together")
        lacking = {
            ActionType.ZOOM: self.region is None,
            ActionType.MOVE: self.x is None,
            ActionType.DRAG: not self.path,
            ActionType.SCROLL: not (self.dx or self.dy),
            ActionType.KEY: not self.keys,
            ActionType.KEY_DOWN: not self.keys,
            ActionType.KEY_UP: not self.keys,
            ActionType.HOLD_KEY: not self.keys,
            ActionType.RESIZE: self.size is None,
        }
        if lacking.get(self.type):
            raise ValueError(f"an action of type {self.type} lacks what it acts on")
        if self.type is ActionType.TYPE and len(self.text) > MAX_TEXT:
            raise ValueError(f"at most {MAX_TEXT} characters are typed by one action")
        return self


class Settle(Strict):
    """Wait until the picture rests: no difference but a blinking caret's for ``quiet_s``, at most ``cap_s``."""

    quiet_s: Annotated[float, Field(gt=0, le=10)] = 0.4
    cap_s: Annotated[float, Field(gt=0, le=60)] = 8.0


class Shot(Strict):
    """The picture that is wanted after the last action."""

    format: Literal["png", "webp", "jpeg"] = "png"
    """``png`` and ``webp`` are lossless."""
    quality: Annotated[int, Field(ge=1, le=100)] = 75
    """Of ``jpeg``."""
    size: Size | None = None
    """Scaled to it; null: as the screen is."""
    cursor: bool = True


class Batch(Strict):
    actions: Annotated[list[DesktopAction], Field(max_length=MAX_ACTIONS)] = Field(default_factory=list[DesktopAction])
    settle: Settle | None = None
    """After the last action and before the picture; null: no waiting."""
    shot: Shot | None = None


class Window(BaseModel):
    """A window: the desktop's word."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    title: str = ""
    program: str = ""
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    active: bool = False


class DesktopState(BaseModel):
    """How the desktop is after a batch: its own word, bounded when it is read."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    width: int
    height: int
    cursor_x: int = 0
    cursor_y: int = 0
    title: str = ""
    """Of the active window."""
    windows: list[Window] = Field(default_factory=list[Window])
    """Only where ``windows`` was asked for."""
    held: list[str] = Field(default_factory=list[str])
    """Keys and buttons that are down."""
    settled: bool | None = None
    """Whether the picture came to rest; null: nobody waited for it."""


class ActionResult(BaseModel):
    """What came of one action."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    index: int
    error: str | None = None
    """Stable word: ``out_of_bounds``, ``unknown_key``, ``no_such_window`` … Later actions of the batch were not done."""
    detail: str = ""
    text: str = ""
    """Of ``clipboard_read``; ``x,y`` of ``cursor_position``."""
    image: int | None = None
    """Of ``screenshot`` and ``zoom``: the position among the outcome's images."""


class Picture(Strict):
    """A picture in the content store."""

    sha256: Sha256
    format: Literal["png", "webp", "jpeg"]
    width: int
    height: int
    size_bytes: int


class SafetyCheck(Strict):
    """Something that the provider wants a person to confirm before the actions are done."""

    id: Annotated[str, Field(max_length=200)]
    code: Annotated[str, Field(max_length=200)] = ""
    message: Annotated[str, Field(max_length=4000)] = ""


class CoordinateSpace(Strict):
    """What a model's coordinates count: pixels of the picture that it was sent, or thousandths of its sides."""

    width: Side
    height: Side
    normalised: bool = False
    """Then both sides are 1000."""

    def to_screen(self, x: float, y: float, screen: Size) -> Point:
        """Return the pixel of the screen, clamped into it."""
        return Point(x=_scaled(x, self.width, screen.width), y=_scaled(y, self.height, screen.height))

    def from_screen(self, point: Point, screen: Size) -> tuple[int, int]:
        """Return coordinates that :meth:`to_screen` reads as near to ``point`` as this space allows."""
        return _scaled(point.x, screen.width, self.width), _scaled(point.y, screen.height, self.height)


def _scaled(value: float, space: int, target: int) -> int:
    if space == target:
        return max(0, min(target - 1, int(value)))
    return max(0, min(target - 1, int((value + 0.5) * target / space)))
