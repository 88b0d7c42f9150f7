"""Connections come and go; no byte is lost or doubled, and the exit is reported until somebody has it."""

import asyncio
import random

import pytest

from service.sandboxes.contract import Exited, Frame
from tests.unit.sandboxes.launcher.rig import Collected, Rig, run_to_end, until

LINES = 200_000
COUNT = f"i=0; while [ $i -lt 400 ]; do seq {LINES // 400}; i=$((i+1)); done; exit 5"
EXPECTED = b"".join(b"%d\n" % (n + 1) for n in range(LINES // 400)) * 400


async def test_reconnections_of_one_link(rig: Rig) -> None:
    link = await rig.up()
    chance = random.Random(7)
    await link.start(rig.shell(COUNT))
    collected = Collected()
    async with asyncio.timeout(60):
        async for item in link.output():
            collected.add(item)
            if isinstance(item, Frame) and chance.random() < 0.5:
                await link.ack(item.stream, item.offset + len(item.data))
            if chance.random() < 0.1:
                link.drop_connection()
            if len(collected.stdout) == len(EXPECTED):
                await link.ack("stdout", len(EXPECTED))
    assert collected.stdout == EXPECTED
    assert collected.end.report.code == 5


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_takeovers_by_new_links(rig: Rig, seed: int) -> None:
    """Each link dies without a word after some frames; what it acknowledged is what it had stored."""
    await rig.up()
    await rig.links[0].start(rig.shell(COUNT))
    stored = bytearray()
    chance = random.Random(seed)
    link, exited = rig.links[0], None
    async with asyncio.timeout(60):
        while exited is None:
            frames = chance.randrange(1, 12)
            async for item in link.output():
                if isinstance(item, Exited):
                    exited = item
                    break
                assert item.offset <= len(stored), "a byte is lost"
                stored += item.data[len(stored) - item.offset :]
                if chance.random() < 0.7 or len(stored) == len(EXPECTED):
                    await link.ack(item.stream, len(stored))
                frames -= 1
                if frames == 0:
                    break
            if exited is None:
                await link.close()
                link = await rig.link()
                await link.ack("stdout", len(stored))
    assert bytes(stored) == EXPECTED
    assert exited.report.code == 5


@pytest.mark.timeout(20)
async def test_a_new_link_begins_at_the_last_acknowledged_byte(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("printf 0123456789; sleep 0.2; printf abc"))
    output = link.output()
    assert await anext(output) == Frame("stdout", 0, b"0123456789")
    await link.ack("stdout", 4)
    assert (await link.exec(["true"], cwd="/")).code == 0  # so the acknowledgement is there
    await link.close()
    link = await rig.link()
    first = await anext(link.output())
    assert isinstance(first, Frame)
    assert (first.offset, first.data[:6]) == (4, b"456789")
    await link.ack("stdout", 10)
    assert await anext(link.output()) == Frame("stdout", 10, b"abc")


@pytest.mark.timeout(20)
async def test_bytes_sent_again_are_not_handed_on_again(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("printf 0123456789; sleep 0.3; printf abc"))
    output = link.output()
    assert await anext(output) == Frame("stdout", 0, b"0123456789")
    link.drop_connection()  # nothing was acknowledged: the launcher sends it all again
    assert await anext(output) == Frame("stdout", 10, b"abc")


@pytest.mark.timeout(20)
async def test_the_exit_waits_for_acknowledgements_and_is_repeated(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("echo x; exit 4"))
    output = link.output()
    assert await anext(output) == Frame("stdout", 0, b"x\n")
    pending = asyncio.ensure_future(anext(output))
    await asyncio.sleep(0.3)
    assert not pending.done()
    await link.ack("stdout", 2)
    exited = await pending
    assert isinstance(exited, Exited)
    assert (await run_to_end(link)).end == exited
    await link.close()
    assert (await run_to_end(await rig.link())).end == exited


async def test_output_made_while_nobody_is_there(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("seq 100000; exit 1"))
    await link.close()
    await asyncio.sleep(0.3)
    got = await run_to_end(await rig.link())
    assert got.stdout == b"".join(b"%d\n" % (n + 1) for n in range(100_000))
    assert got.end.report.code == 1


async def test_requests_are_sent_again_after_a_loss(rig: Rig) -> None:
    link = await rig.up()
    call = asyncio.create_task(link.exec(["sh", "-c", "sleep 0.3; echo x"], cwd="/"))
    await asyncio.sleep(0.1)
    link.drop_connection()
    await link.start(rig.shell("true"))
    await link.write_file("f", b"1")
    assert (await call).stdout == b"x\n"


async def test_the_socket_is_bound_anew_without_a_gap(rig: Rig) -> None:
    link = await rig.up()
    await link.listen()
    await until(lambda: link.connected)
    link.drop_connection()
    await until(lambda: not link.connected)
    await link.wait_connected(5)
    assert (rig.control / "launcher.sock").stat().st_mode & 0o777 == 0o666
    assert rig.control.stat().st_mode & 0o777 == 0o755
