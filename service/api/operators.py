"""Who runs this instance: an admin of the project ``default`` (docs/decisions/0010).

To admins of other projects, what belongs to the instance does not exist: 404, as for every foreign id.
"""

from typing import Annotated

from fastapi import Depends

from service.api.auth import Admin, Caller, State
from service.domain.errors import NotFound
from service.store import projects


async def operator(caller: Admin, state: State) -> Caller:
    """Return the caller, who is an operator. Raises Forbidden without scope ``admin``, NotFound for other projects."""
    async with state.db.reading() as tx:
        project = await projects.get(tx, caller.project_id)
    if project is None or project.name != projects.DEFAULT:
        raise NotFound("not_found")
    return caller


Operator = Annotated[Caller, Depends(operator)]
