"""The way through a worker's bridge to a screen's VNC server: bytes, looked at by nobody here."""

import asyncio

from service.desktop.environment import VNC_PORT
from service.lifecycle.bridge_frames import BridgeBroken, Frame, read_frame, write_frame
from service.sandboxes.contract import Sandbox, ToolFailed

PIECE_BYTES = 64 << 10
STUCK_S = 30.0
"""For a viewer, or a screen, that takes nothing while something waits for it."""


async def pass_through(sandbox: Sandbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Frame:
    """Both sides send frames of bytes from now on, until one of them leaves. ``done``: it was the screen.

    Raises BridgeBroken (it was the viewer, or it takes nothing), ToolFailed, SandboxGone, EngineError.
    """
    screen_reader, screen_writer = await asyncio.open_connection(sock=await sandbox.dial(VNC_PORT), limit=PIECE_BYTES)
    tasks = [asyncio.create_task(_show(screen_reader, writer)), asyncio.create_task(_pass_on(reader, screen_writer))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:  # in this order: a viewer that is cut ends the other one, too
            if task.done():
                task.result()
        return Frame({"done": {"ended": "screen"}})
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        screen_writer.transport.abort()


async def _show(screen: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await screen.read(PIECE_BYTES):
            async with asyncio.timeout(STUCK_S):
                await write_frame(writer, Frame({"stream": "vnc"}, data))
    except TimeoutError:
        writer.transport.abort()  # nothing more can be said to it
        raise BridgeBroken("bridge_broken", f"the viewer took nothing for {STUCK_S:g} s") from None
    except OSError:
        return  # the screen's server went away


async def _pass_on(reader: asyncio.StreamReader, screen: asyncio.StreamWriter) -> None:
    """Returns when the screen's server went away. Raises BridgeBroken, ToolFailed."""
    while True:
        frame = await read_frame(reader)
        try:
            screen.write(frame.body)
            async with asyncio.timeout(STUCK_S):
                await screen.drain()
        except TimeoutError:
            raise ToolFailed("screen_stuck", f"the screen took nothing for {STUCK_S:g} s") from None
        except OSError:
            return
