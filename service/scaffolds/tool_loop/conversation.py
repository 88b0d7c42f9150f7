"""The conversation as the model gets it: kept whole while it fits, then made shorter from its old end.

First old tool results lose their text, then old exchanges are left out. The full record stays in the events. What is
dropped depends on the conversation alone, so a successor drops the same.
"""

import json
from dataclasses import dataclass, field

from service.models.messages import Answer, Image, ResultsTurn, ToolResult, Turn, UserTurn

DEFAULT_WINDOW = 128_000
FULL, ROOMY = 0.7, 0.45
"""Shares of the context window: above the first it is made shorter, down to the second."""
CHARS_PER_TOKEN = 3.5
IMAGE_TOKENS = 1600
KEPT_RESULTS = 4
"""Newest turns of results that keep their text."""
KEPT_IMAGES = 8
LEFT_OUT = (
    "[Earlier parts of this conversation were left out to save space. The files in the workspace are as you left them.]"
)


@dataclass(slots=True)
class Conversation:
    window: int = DEFAULT_WINDOW
    kept_images: int = KEPT_IMAGES
    """Newest images that stay."""
    gone: str = "\n[the image is no longer shown]"
    """What stands after the text of a result that lost its images."""
    turns: list[Turn] = field(default_factory=list[Turn])
    compactions: int = 0

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self._forget_images()

    def compact(self, *, share: float = FULL) -> bool:
        """Make it shorter if it is larger than ``share`` of the window; tell whether something was dropped."""
        if self.tokens() <= share * self.window:
            return False
        goal = min(ROOMY, share / 2) * self.window
        before = list(self.turns)
        self._drop_texts(goal)
        self._drop_exchanges(goal)
        changed = self.turns != before
        self.compactions += changed
        return changed

    def tokens(self) -> float:
        return sum(_tokens(turn) for turn in self.turns)

    def _drop_texts(self, goal: float) -> None:
        places = [i for i, turn in enumerate(self.turns) if isinstance(turn, ResultsTurn)]
        for i in places[: max(0, len(places) - KEPT_RESULTS)]:
            if self.tokens() <= goal:
                return
            turn = self.turns[i]
            assert isinstance(turn, ResultsTurn)
            self.turns[i] = ResultsTurn(results=[_without_text(one) for one in turn.results])

    def _drop_exchanges(self, goal: float) -> None:
        """Leave out whole exchanges (an answer and its results) after the task, so that every call keeps its result."""
        first = self.turns[0]
        rest = self.turns[1:]
        dropped = False
        while self.tokens() > goal and len(rest) > 2 * KEPT_RESULTS:
            take = 2 if isinstance(rest[0], Answer) and not isinstance(rest[1], Answer) else 1
            rest = rest[take:]
            dropped = True
            self.turns = [first, *rest]
        if dropped and isinstance(first, UserTurn) and LEFT_OUT not in first.text:
            self.turns[0] = first.model_copy(update={"text": f"{first.text}\n\n{LEFT_OUT}"})

    def _forget_images(self) -> None:
        left = self.kept_images
        for i in range(len(self.turns) - 1, -1, -1):
            turn = self.turns[i]
            if isinstance(turn, ResultsTurn):
                results: list[ToolResult] = []
                for one in reversed(turn.results):
                    results.insert(0, self._fewer_images(one, left))
                    left -= len(results[0].images)
                if results != turn.results:
                    self.turns[i] = ResultsTurn(results=results)
            elif isinstance(turn, UserTurn) and turn.images:
                images = turn.images[-left:] if left else []
                left -= len(images)
                self.turns[i] = turn.model_copy(update={"images": images})

    def _fewer_images(self, one: ToolResult, left: int) -> ToolResult:
        if len(one.images) <= left:
            return one
        if left:
            return one.model_copy(update={"images": one.images[-left:]})
        return one.model_copy(update={"text": f"{one.text}{self.gone}", "images": []})


def _tokens(turn: Turn) -> float:
    if isinstance(turn, UserTurn):
        return _text(turn.text) + _images(turn.images)
    if isinstance(turn, Answer):
        return _text(json.dumps(turn.items))
    return sum(_text(one.text) + _images(one.images) + 20 for one in turn.results)


def _text(text: str) -> float:
    return len(text) / CHARS_PER_TOKEN


def _images(images: list[Image]) -> float:
    return IMAGE_TOKENS * len(images)


def _without_text(one: ToolResult) -> ToolResult:
    note = f"[output dropped to save space: {len(one.text)} characters]"
    return one if len(one.text) <= len(note) and not one.images else one.model_copy(update={"text": note, "images": []})
