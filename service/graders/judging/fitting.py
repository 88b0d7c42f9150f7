"""Questions that a judge's window does not hold: asked again with less of what was delivered.

Otherwise whoever delivers text that takes many tokens (digits, another script, rare signs) would get no verdict.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.graders.contract import GraderFault
from service.graders.judging.showing import Material

T = TypeVar("T")
HALVINGS = 4
TOO_LONG = "context_too_long"


async def fitting(material: Material, ask: Callable[[Material], Awaitable[T]]) -> tuple[T, Material]:
    """Return what ``ask`` does, and the material that it was asked with: halved as often as need be, four times at most.

    Raises what ``ask`` raises; ``context_too_long`` only from the last time.
    """
    for _ in range(HALVINGS):
        try:
            return await ask(material), material
        except GraderFault as error:
            if error.type != TOO_LONG:
                raise
        material = await material.half.ready()
    return await ask(material), material
