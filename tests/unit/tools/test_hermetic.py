import asyncio
import socket

import pytest
from pytest_socket import SocketBlockedError


def test_a_unit_test_reaches_no_network() -> None:
    with pytest.raises(SocketBlockedError):
        socket.create_connection(("127.0.0.1", 9), timeout=1)


async def test_coroutines_run_all_the_same() -> None:
    await asyncio.sleep(0)
