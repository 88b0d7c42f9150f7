"""Which image a task or a scaffold means: one that the project brought, by id or name, or a shipped one by its name."""

from typing import Any

from service.domain.agents import SCREENS, Surface
from service.domain.desktop import IMAGE
from service.domain.errors import Conflict, Invalid
from service.domain.images import ID, ImageState
from service.store import images
from service.store.database import Tx


async def choose_image(tx: Tx, project_id: str, reference: str) -> str:
    """Return what hosts are asked for. A project's own image wins over a shipped one of its name.

    Raises Invalid (image_not_found, image_refused), Conflict (image_not_ready). The image stays until ``tx`` ends.
    """
    row = await images.meant(tx, project_id, reference)
    if row is None:
        if ID.fullmatch(reference):
            raise Invalid("image_not_found", f"there is no image {reference}", image=reference)
        return reference
    if row.state is ImageState.REFUSED:
        why: dict[str, Any] = row.report.get("refused") or {}
        raise Invalid("image_refused", f"image {row.name} was refused: {why.get('detail')}", image=row.id)
    if row.state is ImageState.PENDING:
        raise Conflict("image_not_ready", f"image {row.name} is not imported yet", image=row.id)
    return row.id


async def choose_environment(tx: Tx, project_id: str, reference: str, surface: Surface) -> str:
    """As :func:`choose_image`, for a task's environment.

    A surface with a screen needs the image that has one, in place of any other shipped one; one that the project brought is
    taken as it is, and so is a host's own whose name begins with ``desktop``.
    """
    chosen = await choose_image(tx, project_id, reference)
    if surface not in SCREENS or ID.fullmatch(chosen) or chosen.startswith(IMAGE):
        return chosen
    return await choose_image(tx, project_id, IMAGE)


class ChosenImages:
    """What :func:`choose_environment` and :func:`choose_image` say, each asked once. Good for one transaction."""

    def __init__(self, tx: Tx, project_id: str) -> None:
        self._tx, self._project_id = tx, project_id
        self._environments: dict[tuple[str, bool], str] = {}
        self._kits: dict[str, str] = {}

    async def environment(self, reference: str, surface: Surface) -> str:
        key = (reference, surface in SCREENS)
        if key not in self._environments:
            self._environments[key] = await choose_environment(self._tx, self._project_id, reference, surface)
        return self._environments[key]

    async def kit(self, reference: str | None) -> str | None:
        if reference is not None and reference not in self._kits:
            self._kits[reference] = await choose_image(self._tx, self._project_id, reference)
        return None if reference is None else self._kits[reference]


async def host_name(tx: Tx, chosen: str) -> str:
    """Return what the host's engine calls an image that was chosen."""
    row = await images.load(tx, chosen) if ID.fullmatch(chosen) else None
    return chosen if row is None or row.content is None else row.content.tag
