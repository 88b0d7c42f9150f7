"""The conversation is made shorter from its old end, and every call keeps its result."""

import json

from hypothesis import given
from hypothesis import strategies as st

from service.models.messages import Answer, Image, ResultsTurn, ToolCall, ToolResult, Turn, UserTurn
from service.scaffolds.tool_loop.conversation import FULL, LEFT_OUT, Conversation


def exchange(n: int, size: int) -> tuple[Answer, ResultsTurn]:
    call = ToolCall(id=f"c{n}", name="bash", arguments={"command": "x" * 50})
    answer = Answer(calls=[call], stop="tool_calls", items=[{"type": "tool_use", "id": f"c{n}", "input": "x" * 50}])
    return answer, ResultsTurn(results=[ToolResult(id=f"c{n}", name="bash", text="y" * size)])


def talk(sizes: list[int], window: int) -> Conversation:
    made = Conversation(window=window)
    made.add(UserTurn(text="the task"))
    for n, size in enumerate(sizes):
        for turn in exchange(n, size):
            made.add(turn)
    return made


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=40), st.integers(2_000, 60_000))
def test_calls_and_results_stay_in_pairs(sizes: list[int], window: int) -> None:
    made = talk(sizes, window)
    before = made.tokens()
    changed = made.compact()
    assert changed is False or before > FULL * window
    assert made.tokens() <= before + 100
    calls = [c.id for turn in made.turns if isinstance(turn, Answer) for c in turn.calls]
    results = [r.id for turn in made.turns if isinstance(turn, ResultsTurn) for r in turn.results]
    assert calls == results == [f"c{n}" for n in range(len(sizes) - len(calls), len(sizes))]
    assert isinstance(made.turns[0], UserTurn)


def test_what_fits_is_left_alone() -> None:
    made = talk([100] * 5, 128_000)
    assert made.compact() is False


def test_newest_results_keep_their_text_and_the_model_is_told() -> None:
    made = talk([10_000] * 60, 20_000)
    assert made.compact() is True
    last = made.turns[-1]
    assert isinstance(last, ResultsTurn)
    assert last.results[0].text == "y" * 10_000
    assert LEFT_OUT in made.turns[0].model_dump()["text"]
    assert json.dumps([t.model_dump() for t in made.turns]).count(LEFT_OUT) == 1


def test_only_the_newest_images_stay() -> None:
    made = Conversation(kept_images=2)
    images = [Image(media_type="image/png", data=str(n)) for n in range(5)]
    made.add(UserTurn(text="the task", images=images[:1]))
    made.add(ResultsTurn(results=[ToolResult(id="c0", name="computer", text="old", images=images[1:2])]))
    assert [image.data for turn in made.turns for image in shown(turn)] == ["0", "1"]
    made.add(ResultsTurn(results=[ToolResult(id="c1", name="computer", text="new", images=images[2:])]))
    assert [image.data for turn in made.turns for image in shown(turn)] == ["3", "4"]
    old = made.turns[1]
    assert isinstance(old, ResultsTurn)
    assert old.results[0].text == "old\n[the image is no longer shown]"


def shown(turn: Turn) -> list[Image]:
    if isinstance(turn, ResultsTurn):
        return [image for one in turn.results for image in one.images]
    return turn.images if isinstance(turn, UserTurn) else []
