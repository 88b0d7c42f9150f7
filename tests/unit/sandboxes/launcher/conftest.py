from collections.abc import AsyncIterator

import pytest

from tests.unit.sandboxes.launcher.rig import Rig


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    try:
        yield rig
    finally:
        await rig.close()
