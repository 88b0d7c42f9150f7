"""Films in a real room: stills of all formats, broken and hostile ones, captions; looked at with ffprobe there."""

import io
import json
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image

from service.desktop.film import making
from service.desktop.film.making import IMAGE, STRIP, Film, Still, film_size, make_film
from service.domain.desktop import Size
from service.domain.limits import MIB, Limits
from service.sandboxes.contract import FileSource, SandboxRefused
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.store.blobs import BlobStore
from tests.needs import missing

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]
PROBE = ("/opt/media/bin/ffprobe", "-v", "error", "-count_frames", "-of", "json", "-show_entries",
         "format=duration:stream=codec_name,width,height,nb_read_frames", "film.mp4")  # fmt: skip
FRAMES = ("/opt/media/bin/ffmpeg", "-v", "error", "-i", "film.mp4", "-vf", "scale=4:4", "-f", "rawvideo", "-pix_fmt",
          "rgb24", "-")  # fmt: skip
LIBRARIES = {"LD_LIBRARY_PATH": "/opt/media/lib"}
COLOURS = {"png": (200, 20, 20), "webp": (20, 200, 20), "jpeg": (20, 20, 200)}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rooms() -> AsyncIterator[EngineRooms]:
    data = Path(tempfile.mkdtemp(prefix="workstead-film-"))
    async with open_rooms(data, f"tests-{uuid.uuid4().hex[:8]}", RoomsConfig(2)) as opened:
        if opened is None:
            missing("no engine")
        try:
            await opened.backend.resolve_image(IMAGE)
        except SandboxRefused:
            missing(f"no image {IMAGE} (`make images` builds it)")
        yield opened
        await opened.close()
    shutil.rmtree(data)


def _still(folder: Path, data: bytes, caption: str = "") -> Still:
    path = folder / uuid.uuid4().hex
    path.write_bytes(data)
    return Still(path, len(data), caption)


def _picture(format: str, size: tuple[int, int] = (320, 200)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, COLOURS[format]).save(buffer, format.upper(), lossless=True)
    return buffer.getvalue()


async def _film(rooms: EngineRooms, folder: Path, stills: list[Still], size: Size) -> tuple[Film | None, BlobStore]:
    blobs, done = BlobStore(folder / "blobs"), list[int]()

    async def told(count: int) -> None:
        done.append(count)

    film = await make_film(stills, size, 2, rooms, blobs.put_stream, told)
    assert done[-1] == len(stills)
    return film, blobs


async def test_a_film_shows_each_still_and_leaves_out_what_is_none(
    rooms: EngineRooms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "BATCH_STILLS", 3)  # several pieces, one of which has no picture at all
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    broken = [b"no picture", _picture("png")[:60], b"", bomb.getvalue(), b"RIFF\xff\xff\xff\xffWEBPVP8L"]
    stills = [_still(tmp_path, _picture(format), f"1:{n:02}  clíck (1, 2) 漢") for n, format in enumerate(COLOURS)]
    stills[1:1] = [_still(tmp_path, data, "broken") for data in broken]
    stills.append(_still(tmp_path, _picture("png", (1000, 3000)), ""))
    size = film_size(Size(width=320, height=200), captions=True)
    film, blobs = await _film(rooms, tmp_path, stills, size)
    assert film is not None
    assert (film.stills, film.skipped) == (4, len(broken))
    async with rooms.open(IMAGE, Limits(memory_bytes=512 * MIB, disk_bytes=64 * MIB), in_memory=True) as room:
        await room.write_files([FileSource("film.mp4", file=blobs.path(film.sha256))])
        seen = json.loads((await room.exec(PROBE, env=LIBRARIES)).stdout)
        pixels = (await room.exec(FRAMES, env=LIBRARIES)).stdout
    [stream] = seen["streams"]
    assert (stream["codec_name"], stream["width"], stream["height"]) == ("h264", 320, 200 + STRIP)
    assert stream["nb_read_frames"] == "4"
    assert float(seen["format"]["duration"]) == pytest.approx(2.0, abs=0.1)
    for frame, colour in enumerate(COLOURS.values()):
        upper_left = pixels[frame * 48 : frame * 48 + 3]
        assert max(range(3), key=lambda n: upper_left[n]) == colour.index(200)


async def test_nothing_but_rubbish_is_no_film(rooms: EngineRooms, tmp_path: Path) -> None:
    film, _ = await _film(rooms, tmp_path, [_still(tmp_path, b"rubbish")], Size(width=320, height=200))
    assert film is None
