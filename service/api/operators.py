"""Who runs this instance: an admin of the project ``default`` (docs/decisions/0010).

To admins of other projects, what belongs to the instance does not exist: 404, as for every foreign id.
"""

from typing import Annotated

from fastapi import Depends

from service.api.auth import Admin, Caller, State
from service.api.state import ApiState
from service.domain.errors import NotFound
from service.store import projects


async def is_operator(state: ApiState, caller: Caller) -> bool:
    if not caller.may("admin"):
        return False
    async with state.db.reading() as tx:
        project = await projects.get(tx, caller.project_id)
    return project is not None and project.name == projects.DEFAULT


async def operator(caller: Admin, state: State) -> Caller:
    """Return the caller, who is an operator. Raises Forbidden without scope ``admin``, NotFound for other projects."""
    if not await is_operator(state, caller):
        raise NotFound("not_found")
    return caller


Operator = Annotated[Caller, Depends(operator)]
