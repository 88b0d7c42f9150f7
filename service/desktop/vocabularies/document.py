"""A vocabulary as data (NEEDS C10): a JSON document that maps names and arguments of actions to the unified model.

For a model with words of its own, without code::

    {"name": "acme.1", "coordinates": "thousandths", "action": "name", "arguments": "args",
     "actions": {"tap": {"type": "click", "take": [{"to": "point", "argument": "position"}]},
                 "stop": {"ending": "done"}},
     "golden": [{"payload": {"name": "tap", "args": {"position": [500, 500]}},
                 "actions": [{"type": "click", "x": 640, "y": 400}]},
                {"payload": {"name": "stop"}, "ending": "done"}]}
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.domain.desktop import HEIGHT, WIDTH, ActionType, DesktopAction, Size
from service.domain.tasks import Strict

Where = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,3}$")]
"""Names from the outer object inwards, with dots between them."""
Scalar = Annotated[str, Field(max_length=200)] | bool | int | float
Target = Literal[
    "x",
    "y",
    "point",
    "start",
    "end",
    "path",
    "region",
    "button",
    "count",
    "modifiers",
    "keys",
    "text",
    "seconds",
    "repeat",
    "dx",
    "dy",
    "way",
    "amount",
    "intent",
]

_SETTABLE = DesktopAction.model_fields.keys() - {"type", "raw"}


class Take(Strict):
    """An argument, and what of the action it is."""

    to: Target
    """A field of the action; ``point`` is its x and y, ``start`` and ``end`` are those of a drag, ``way`` (``up``, ``down``,
    ``left``, ``right``) and ``amount`` say a scrolling together."""
    argument: Where
    optional: bool = False
    """It may be missing; else that is an error of the model's."""
    default: Scalar | None = None
    """Stands for a missing one."""
    words: Annotated[dict[str, str], Field(max_length=200)] = Field(default_factory=dict[str, str])
    """Their word → ours, of buttons, ways and keys."""
    scale: Annotated[float, Field(gt=0, le=10_000)] | Annotated[float, Field(lt=0, ge=-10_000)] = 1.0
    """Ours = theirs · scale, of numbers that are no coordinates; pixels to clicks of the wheel: 0.01."""
    shape: Literal["list", "object"] = "list"
    """How a point is written: ``[x, y]`` or ``{"x": …, "y": …}``. Both are read."""


class Rule(Strict):
    """What a name means: an action, or the end."""

    type: ActionType | None = None
    set: Annotated[dict[str, Any], Field(max_length=16)] = Field(default_factory=dict[str, Any])
    """Fields of the action that are always so."""
    take: Annotated[list[Take], Field(max_length=16)] = Field(default_factory=list[Take])
    ending: Literal["done", "fail"] | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.type is None) == (self.ending is None):
            raise ValueError("a rule has a type, or an ending")
        if self.ending is not None and (self.take or self.set):
            raise ValueError("an ending takes nothing")
        if not self.set.keys() <= _SETTABLE:
            raise ValueError(f"set has fields of an action: {', '.join(sorted(_SETTABLE))}")
        return self


class Golden(Strict):
    """A payload and what it means on a screen."""

    payload: dict[str, Any]
    actions: Annotated[list[DesktopAction], Field(max_length=64)] = Field(default_factory=list[DesktopAction])
    ending: Literal["done", "fail"] | None = None
    both: bool = True
    """A single action is also written so."""
    screen: Size = Size(width=WIDTH, height=HEIGHT)
    image: Size | None = None
    """Of the picture that the model was sent; null: as the screen."""


class Tool(Strict):
    """A function that a model is offered. Its calls are payloads: see ``Document.arguments``."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: Annotated[str, Field(max_length=8000)] = ""
    parameters: dict[str, Any]
    """JSON schema of an object."""


class Document(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,30}\.[a-z0-9][a-z0-9_.-]{0,40}$")]
    """``provider.version``."""
    coordinates: Literal["pixels", "thousandths"] = "pixels"
    """Of the picture that the model was sent, or of its sides."""
    most_edge: Annotated[int, Field(ge=320, le=4096)] | None = None
    """Most pixels of the picture's longer side; null: as the screen is."""
    most_pixels: Annotated[int, Field(ge=320 * 320, le=4096 * 4096)] | None = None
    batch: Where | None = None
    """Where a payload has the list of its actions; null: it is one action."""
    action: Where = "action"
    """Where an action has its name."""
    arguments: Where | None = None
    """Where an action has its arguments; null: beside its name. A call of one of ``tools`` becomes the payload with its
    name at ``action`` and its arguments here; with null the arguments are the payload."""
    actions: Annotated[dict[str, Rule], Field(min_length=1, max_length=64)]
    golden: Annotated[list[Golden], Field(min_length=1, max_length=256)]
    tools: Annotated[list[Tool], Field(max_length=32)] = Field(default_factory=list[Tool])
