"""From what a model wants to a batch, and from what came of it to what the model is told. Pure."""

from collections.abc import Sequence

from service.domain.desktop import LOOKS, RESTLESS, ActionType, Batch, DesktopAction, Picture, Settle, Shot, Size
from service.scaffolds.loops import DesktopOutcome

SETTLE = Settle(quiet_s=0.6)
INTERRUPTED = (
    "The connection to the computer was lost while this was being done: some of it may have been done, and it was not "
    "done again. Look at the picture before you go on."
)
MAX_TEXT = 20_000


def batch_of(actions: Sequence[DesktopAction], size: Size | None) -> Batch:
    """``size``: of the picture that the model is sent; null: as the screen is."""
    zooms = bool(actions) and all(action.type is ActionType.ZOOM for action in actions)
    acts = any(action.type not in LOOKS for action in actions)
    return Batch(
        actions=list(actions),
        settle=SETTLE if acts else None,
        shot=None if zooms else Shot(size=size),  # who looks closer is shown that
    )


def told(batch: Batch, outcome: DesktopOutcome) -> tuple[str, bool]:
    """Return what the model is told in words, and whether it is an error."""
    lines: list[str] = []
    if outcome.error is not None:
        lines.append(f"The computer did not do this: {outcome.error}. {outcome.detail}".rstrip())
    if outcome.interrupted:
        lines.append(INTERRUPTED)
    failed = [result for result in outcome.results if result.error is not None]
    for result in outcome.results:
        if result.error is not None:
            lines.append(_failure(batch, result.index, f"{result.error} {result.detail}".rstrip()))
        elif result.text:
            lines.append(result.text)
    if outcome.state is not None and any(a.type is ActionType.WINDOWS for a in batch.actions):
        lines += [f"{'* ' if w.active else '- '}{w.title} ({w.program})" for w in outcome.state.windows]
    if outcome.state is not None and outcome.state.settled is False:
        lines.append(RESTLESS)
    return "\n".join(lines)[:MAX_TEXT], bool(failed or outcome.error or outcome.interrupted)


def seen(batch: Batch, outcome: DesktopOutcome) -> list[Picture]:
    """Return the pictures that the model is sent: those that its actions took, then the one after the last of them."""
    last = batch.actions[-1].type if batch.actions else None
    again = outcome.picture is not None and last is ActionType.SCREENSHOT
    of_last = {r.image for r in outcome.results if r.index == len(batch.actions) - 1} if again else set[int | None]()
    taken = [picture for n, picture in enumerate(outcome.images) if n not in of_last]
    return [*taken, *([outcome.picture] if outcome.picture is not None else [])]


def _failure(batch: Batch, index: int, why: str) -> str:
    several = len(batch.actions) > 1
    kind = batch.actions[index].type.value if 0 <= index < len(batch.actions) else "action"
    rest = "; what comes after it was not done" if index + 1 < len(batch.actions) else ""
    return f"{f'Action {index + 1} ({kind})' if several else kind} failed: {why}{rest}"
