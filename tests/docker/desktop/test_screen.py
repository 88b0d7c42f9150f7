"""Pictures, rest, size, windows and clipboard, and what a hostile program does to them."""

import asyncio
import io
import time

import pytest
from PIL import Image

from service.sandboxes.contract import Sandbox
from tests.docker.desktop.conftest import Events
from tests.docker.desktop.driver import INSIDE, Deskd, do, end, shell, start

pytestmark = pytest.mark.asyncio(loop_scope="session")
BLUE, RED = (0x22, 0x66, 0xCC), (255, 0, 0)
SCREEN_SIZE = 1280, 800


def picture(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


@pytest.mark.parametrize("form", ["png", "webp"])
async def test_a_lossless_picture_shows_the_screen(deskd: Deskd, probed: Events, form: str) -> None:
    head, body = await deskd.perform(do("move", x=900, y=700), shot={"format": form}, before=True)
    assert [(one["role"], one["width"], one["height"]) for one in head["images"]] == [
        ("before", *SCREEN_SIZE),
        ("shot", *SCREEN_SIZE),
    ]
    shot = picture(body[head["images"][0]["bytes"] :])
    assert shot.size == SCREEN_SIZE
    assert shot.getpixel((101, 101)) == shot.getpixel((699, 499)) == BLUE
    assert shot.getpixel((99, 99)) == shot.getpixel((700, 500)) != BLUE


async def test_the_cursor_is_drawn_where_it_is_wanted(deskd: Deskd, probed: Events) -> None:
    place = do("move", x=400, y=300)
    with_it = picture((await deskd.perform(place, shot={"format": "png"}))[1])
    without = picture((await deskd.perform(place, shot={"format": "png", "cursor": False}))[1])
    around = (390, 290, 430, 330)
    assert without.crop(around).getcolors() == [(1600, BLUE)]
    drawn = [
        (x, y)
        for x in range(around[0], around[2])
        for y in range(around[1], around[3])
        if with_it.getpixel((x, y)) != BLUE
    ]
    assert len(drawn) > 30
    # Its tip is there, with an outline around it.
    assert 396 <= min(x for x, _ in drawn) <= 401
    assert 296 <= min(y for _, y in drawn) <= 301


async def test_zoom_and_scaled_pictures(deskd: Deskd, probed: Events) -> None:
    corner = do("zoom", region={"x0": 60, "y0": 80, "x1": 140, "y1": 130})
    head, body = await deskd.perform(
        corner,
        corner | {"size": {"width": 100, "height": 100}},
        do("screenshot"),
        shot={"format": "png", "size": {"width": 640, "height": 400}},
    )
    assert [result.get("image") for result in head["results"]] == [0, 1, 2]
    sizes = [(one["role"], one["width"], one["height"]) for one in head["images"]]
    assert sizes == [("action", 1280, 800), ("action", 100, 100), ("action", 640, 400), ("shot", 640, 400)]
    zoomed = picture(body[: head["images"][0]["bytes"]])
    assert zoomed.getpixel((1270, 790)) == BLUE
    assert zoomed.getpixel((600, 790)) != BLUE


async def test_pictures_that_are_too_large_are_refused(deskd: Deskd, sandbox: Sandbox) -> None:
    await start(sandbox, ["python3", f"/workspace/{INSIDE}/blinking.py", "noise"])
    await shell(sandbox, "for n in $(seq 400); do test -e /tmp/noise && break; sleep 0.05; done")
    huge = do("zoom", region={"x0": 0, "y0": 100, "x1": 1280, "y1": 700}, size={"width": 4096, "height": 4096})
    assert await deskd.refused(huge) == "too_large"
    head, body = await deskd.perform(*[do("screenshot")] * 30, shot={"format": "png"})
    assert head["results"][-1]["error"] == "too_large"
    assert head["images"][-1]["role"] == "shot"
    assert len(body) <= 24 << 20
    await end(sandbox, "blinking.py")


@pytest.mark.slow
async def test_a_caret_and_other_small_blinking_is_rest(deskd: Deskd, sandbox: Sandbox) -> None:
    await deskd.page("caret", "<textarea autofocus>")
    await start(sandbox, ["python3", f"/workspace/{INSIDE}/blinking.py", "carets"])
    await deskd.done(do("wait", seconds=1.5))
    for _ in range(2):
        settled = await deskd.done(settle={"quiet_s": 1.2, "cap_s": 8})
        assert settled["state"]["settled"] is True
        assert settled["took_s"] < 5
    await end(sandbox, "blinking.py")


async def test_what_moves_on_is_no_rest(deskd: Deskd, sandbox: Sandbox) -> None:
    await start(sandbox, ["python3", f"/workspace/{INSIDE}/blinking.py", "growing"])
    await deskd.done(do("wait", seconds=0.7))
    moving = await deskd.done(settle={"quiet_s": 0.4, "cap_s": 1.5})
    assert moving["state"]["settled"] is False
    assert 1.5 <= moving["took_s"] < 4
    await end(sandbox, "blinking.py")


async def test_rest_begins_when_the_change_is_over(deskd: Deskd, sandbox: Sandbox) -> None:
    await start(sandbox, ["python3", f"/workspace/{INSIDE}/blinking.py", "late"])
    settled = await deskd.done(do("wait", seconds=0.5), settle={"quiet_s": 0.9, "cap_s": 15})
    assert settled["state"]["settled"] is True
    after, body = await deskd.perform(shot={"format": "png"})
    assert after
    assert picture(body).getpixel((500, 500)) == RED
    await end(sandbox, "blinking.py")


async def test_an_abort_ends_the_wait_for_rest(deskd: Deskd, sandbox: Sandbox) -> None:
    number = await deskd.say("perform", actions=[], settle={"quiet_s": 9, "cap_s": 60}, shot={"format": "png"})
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await deskd.say("abort")
    answers = {head["id"]: head for head, _ in (await deskd.answer(), await deskd.answer())}
    assert time.monotonic() - began < 2
    assert answers[number]["state"]["settled"] is False


@pytest.mark.parametrize("size", [(1111, 777), (4096, 2160), (320, 320), SCREEN_SIZE])
async def test_the_screen_takes_any_size_while_it_is_used(deskd: Deskd, size: tuple[int, int]) -> None:
    width, height = size
    head, body = await deskd.perform(
        do("resize", size={"width": width, "height": height}),
        do("click", x=width - 1, y=10),
        do("click", x=width, y=10),
        settle={"quiet_s": 0.2, "cap_s": 5},
        shot={"format": "jpeg"},
    )
    assert [result.get("error") for result in head["results"]] == [None, None, "out_of_bounds"]
    assert (head["state"]["width"], head["state"]["height"]) == size
    assert picture(body).size == size


async def test_windows_and_their_titles(deskd: Deskd, sandbox: Sandbox) -> None:
    await deskd.page("żółw 漢字", "")
    head = await deskd.done(do("windows"))
    active = [window for window in head["state"]["windows"] if window["active"]]
    assert [(window["title"], window["program"].lower()) for window in active] == [("żółw 漢字 - Chromium", "chromium")]
    assert active[0]["width"] > 500
    assert (await deskd.done())["state"]["windows"] == []


async def test_the_clipboard_both_ways(deskd: Deskd, sandbox: Sandbox) -> None:
    large = "żółw 漢字 🙂\n" * 20_000
    assert len(large.encode()) > 256 << 10, "more than one request holds"
    for text in ("żółw 漢字 🙂", "", large):
        assert await deskd.text(do("clipboard_write", text=text), do("clipboard_read")) == text
    assert await deskd.refused(do("clipboard_write", text="ż" * (600 << 10))) == "too_large"
    await deskd.done(do("clipboard_write", text=large))
    await deskd.page("paste", "<textarea autofocus>")
    await deskd.done(do("key", keys=["ctrl", "v"]), settle={"quiet_s": 0.5, "cap_s": 10})
    await deskd.done(do("clipboard_write", text="-"), do("key", keys=["ctrl", "a"]), do("key", keys=["ctrl", "c"]))
    back = ""
    for _ in range(100):
        if (back := await deskd.text(do("wait", seconds=0.1), do("clipboard_read"))) != "-":
            break
    # Chromium's pieces come one after the other (INCR).
    assert back == large


@pytest.mark.parametrize(
    ("mode", "word"),
    [
        ("endless", "too_large"),
        pytest.param("giant", "too_large", marks=pytest.mark.slow),
        ("silent", "clipboard_unavailable"),
        pytest.param("stalling", "clipboard_unavailable", marks=pytest.mark.slow),
        ("picture", "clipboard_unavailable"),
    ],
)
async def test_a_hostile_owner_of_the_clipboard(deskd: Deskd, sandbox: Sandbox, mode: str, word: str) -> None:
    await start(sandbox, ["python3", f"/workspace/{INSIDE}/copying.py", mode])
    await shell(sandbox, "for n in $(seq 200); do test -e /tmp/copying && break; sleep 0.05; done; rm /tmp/copying")
    began = time.monotonic()
    assert await deskd.refused(do("clipboard_read")) == word
    assert time.monotonic() - began < 8
    await end(sandbox, "copying.py")
    assert await deskd.text(do("clipboard_write", text="ours"), do("clipboard_read")) == "ours"
