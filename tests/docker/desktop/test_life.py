"""How deskd begins and ends, and what it says when the screen is gone. In a sandbox of its own: its X server dies."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from service.sandboxes.contract import Sandbox
from service.sandboxes.docker.backend import DockerBackend
from tests.docker.desktop.conftest import a_desktop
from tests.docker.desktop.driver import Deskd, Said, do, end, shell

pytestmark = pytest.mark.asyncio(loop_scope="session")
DOWN = """
import sys
from Xlib.display import Display
display = Display()
print(any(display.query_keymap()), bool(display.screen().root.query_pointer().mask & 0x1F00))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def doomed(backend: DockerBackend) -> AsyncIterator[Sandbox]:
    made = await a_desktop(backend)
    yield made
    await backend.remove(made.id)


async def is_down(sandbox: Sandbox) -> str:
    """Whether a key, and whether a button is down: the server's word."""
    return (await shell(sandbox, f"python3 -c '{DOWN}'")).strip()


async def gone(sandbox: Sandbox) -> None:
    await shell(sandbox, "while pgrep -f '[.]deskd/main.py'; do sleep 0.05; done")


async def test_a_second_deskd_finds_the_session(doomed: Sandbox) -> None:
    first = await Deskd.open(doomed, size="1024x768")
    assert first.hello["hello"]["protocol"] == 1
    await first.done(do("resize", size={"width": 800, "height": 600}))
    await first.close()
    await gone(doomed)
    second = await Deskd.open(doomed, size="1024x768")
    hello = second.hello["hello"]
    assert (hello["width"], hello["height"]) == (800, 600)
    assert hello["ready_s"] < 1
    await second.close()


@pytest.mark.parametrize("how", ["EOF", "TERM", "KILL"])
async def test_nothing_stays_down_behind_a_deskd_that_ends(doomed: Sandbox, how: str) -> None:
    deskd = await Deskd.open(doomed)
    await deskd.done(do("key_down", keys=["ctrl", "x"]), do("mouse_down", x=300, y=300))
    await deskd.say(
        "perform", actions=[do("drag", path=[{"x": 10 + n, "y": 10} for n in range(250)]), do("wait", seconds=90)]
    )
    assert await is_down(doomed) == "True True"
    if how == "EOF":
        await deskd.close()
    else:
        await end(doomed, "main.py", how)
    if how == "KILL":
        await (await Deskd.open(doomed)).close()
    await gone(doomed)
    assert await is_down(doomed) == "False False"


@pytest.mark.parametrize(
    "said",
    [struct.pack(">II", 0xFFFFFFFF, 0), struct.pack(">II", 2, 1) + b"{}", struct.pack(">II", 3, 0) + b"{}}"],
    ids=["length", "body", "json"],
)
async def test_a_frame_that_makes_no_sense_is_the_last(doomed: Sandbox, said: bytes) -> None:
    deskd = await Deskd.open(doomed)
    await deskd.pipe.write(said)
    assert (await deskd.answer())[0]["error"]["type"] == "bad_request"
    with pytest.raises(EOFError):
        await deskd.answer()


async def test_requests_that_make_no_sense_are_refused_one_by_one(doomed: Sandbox) -> None:
    deskd = await Deskd.open(doomed)
    senseless: list[Said] = [
        {"actions": "all"},
        {"actions": [1]},
        {"actions": [do("wait")] * 65},
        {"actions": [], "settle": {"quiet_s": "soon"}},
        {"actions": [], "shot": {"format": "bmp"}},
        {"actions": [], "shot": {"size": {"width": 100_000, "height": 1}}},
    ]
    for fields in senseless:
        number = await deskd.say("perform", **fields)
        head, body = await deskd.answer()
        assert (head["id"], head["error"]["type"], body) == (number, "bad_request", b"")
    await deskd.say("destroy")
    assert (await deskd.answer())[0]["error"]["type"] == "bad_request"
    await deskd.done(do("wait", seconds=0))
    await deskd.close()


async def test_a_full_tmp_is_no_trouble(doomed: Sandbox) -> None:
    deskd = await Deskd.open(doomed)
    await shell(doomed, "head -c 1G /dev/zero > /tmp/full")
    head, body = await deskd.perform(do("type", text="é"), do("screenshot"), shot={"format": "png"})
    assert [result.get("error") for result in head["results"]] == [None, None]
    assert body
    await deskd.close()
    again = await Deskd.open(doomed)
    assert "hello" in again.hello
    await again.close()
    await shell(doomed, "rm /tmp/full")


async def test_an_x_server_that_stands_still_is_noticed(doomed: Sandbox) -> None:
    deskd = await Deskd.open(doomed)
    await shell(doomed, "pkill -STOP Xtigervnc")
    began = time.monotonic()
    head, _ = await deskd.perform(do("move", x=10, y=10), shot={"format": "png"})
    assert head["error"]["type"] == "x_server_gone"
    assert time.monotonic() - began < 10
    with pytest.raises(EOFError):
        await deskd.answer()
    await shell(doomed, "pkill -CONT Xtigervnc")
    again = await Deskd.open(doomed)
    await again.done(do("move", x=10, y=10))
    await again.close()


async def test_an_x_server_that_is_killed_is_replaced_by_the_next_deskd(doomed: Sandbox) -> None:
    deskd = await Deskd.open(doomed)
    number = await deskd.say("perform", actions=[do("wait", seconds=1), do("move", x=10, y=10)])
    await asyncio.sleep(0.1)
    await shell(doomed, "pkill -KILL Xtigervnc")
    head, _ = await deskd.answer()
    assert (head["id"], head["error"]["type"]) == (number, "x_server_gone")
    again = await Deskd.open(doomed)
    assert (again.hello["hello"]["width"], again.hello["hello"]["height"]) == (1280, 800)
    head, body = await again.perform(do("click", x=500, y=500), shot={"format": "jpeg"})
    assert body
    await again.close()
