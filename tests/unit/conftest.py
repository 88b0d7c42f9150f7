"""Virtual time for tests marked ``looptime`` only: the plug-in would patch each loop and look at each fixture."""

import asyncio
from collections.abc import Generator
from typing import Any

import looptime
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    if pyfuncitem.get_closest_marker("looptime") is None:
        return (yield)
    policy: Any = pyfuncitem.funcargs["event_loop_policy"]
    loop = policy.get_event_loop()
    assert isinstance(loop, asyncio.BaseEventLoop)
    patched = looptime.patch_event_loop(loop, _enabled=False)
    with patched.looptime_enabled():
        return (yield)
