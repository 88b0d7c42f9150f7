"""Text in the programs of the image, read back from them; three times each, since what goes wrong goes wrong now and then."""

import pytest

from service.sandboxes.contract import Sandbox
from tests.docker.desktop.driver import QUIET, Deskd, do, shell, start

pytestmark = pytest.mark.asyncio(loop_scope="session")
TEXT = "Zażółć é ü ñ “q” — 漢字 かな 한글 Ж ∑ € 🙂🚀"
MANY = "".join(chr(0x4E00 + 7 * n) for n in range(130)) + "żółw " + "".join(chr(0x410 + n) for n in range(64))
"""More characters than there are spare keys."""
TIMES = 3


async def copied(deskd: Deskd) -> str:
    """Return what the program has, by its own clipboard."""
    await deskd.done(do("clipboard_write", text="nothing"))
    for _ in range(100):
        await deskd.done(do("key", keys=["ctrl", "a"]), do("key", keys=["ctrl", "c"]))
        text = await deskd.text(do("wait", seconds=0.1), do("clipboard_read"))
        if text not in ("nothing", ""):
            return text
    raise AssertionError("nothing was copied")


async def gone(sandbox: Sandbox, program: str) -> None:
    """End a program; its window is not to be taken for its successor's."""
    await shell(sandbox, f"pkill {program}; while pgrep {program}; do sleep 0.05; done")


async def types_and_copies(deskd: Deskd, text: str) -> None:
    for _ in range(TIMES):
        head = await deskd.done(do("type", text=text), settle=QUIET)
        assert head["state"]["settled"], "a caret blinks, and nothing else"
        assert await copied(deskd) == text
        await deskd.done(do("key", keys=["Delete"]), settle=QUIET)


@pytest.mark.parametrize("text", [TEXT, pytest.param(MANY, marks=pytest.mark.slow)], ids=["mixed", "many"])
async def test_chromium(deskd: Deskd, sandbox: Sandbox, text: str) -> None:
    await deskd.page(f"form {len(text)}", "<textarea autofocus rows=9 cols=90>")
    await types_and_copies(deskd, text)


@pytest.mark.slow
@pytest.mark.parametrize("text", [TEXT, MANY], ids=["mixed", "many"])
async def test_mousepad(deskd: Deskd, sandbox: Sandbox, text: str) -> None:
    await start(sandbox, ["mousepad"])
    await deskd.window("Mousepad")
    await types_and_copies(deskd, text)
    await gone(sandbox, "mousepad")


@pytest.mark.slow
async def test_writer(deskd: Deskd, sandbox: Sandbox) -> None:
    await start(sandbox, ["lowriter", "--nologo", "--norestore"])
    await deskd.window("Writer")
    await deskd.done(do("wait", seconds=0.1), settle=QUIET)  # its window is there before it listens
    await types_and_copies(deskd, TEXT)
    await gone(sandbox, "soffice")


async def test_terminal(deskd: Deskd, sandbox: Sandbox) -> None:
    await start(sandbox, ["lxterminal"])
    await deskd.window("LXTerminal")
    for number in range(TIMES):
        await deskd.done(do("type", text=f"cat > /tmp/typed{number}\n"), settle=QUIET)
        await shell(sandbox, "while ! pgrep -x cat; do sleep 0.05; done")
        line = do("type", text=f"{TEXT}\n\tindented\r\n")
        assert (await deskd.done(line, do("key", keys=["ctrl", "d"]), settle=QUIET))["state"]["settled"]
        await shell(sandbox, "while pgrep -x cat; do sleep 0.05; done")
        assert await shell(sandbox, f"cat /tmp/typed{number}") == f"{TEXT}\n\tindented\n"
    await gone(sandbox, "lxterminal")


@pytest.mark.slow
async def test_another_deskd_goes_on_with_the_keys_that_the_last_one_bound(deskd: Deskd, sandbox: Sandbox) -> None:
    await start(sandbox, ["mousepad"])
    await deskd.window("Mousepad")
    for shift in range(TIMES):
        other = await Deskd.open(sandbox)
        text = MANY[60 * shift : 60 * shift + 55] + "é"
        await other.done(do("type", text=text), settle=QUIET)
        assert await copied(other) == text
        await other.close()
    await gone(sandbox, "mousepad")
