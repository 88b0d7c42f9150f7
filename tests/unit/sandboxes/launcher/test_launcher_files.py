"""Files into and out of the sandbox."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from service.sandboxes.contract import FileSource, ToolFailed
from tests.unit.sandboxes.launcher.rig import AGENT_UID, Rig


async def test_written_files(rig: Rig) -> None:
    link = await rig.up()
    big = os.urandom(700_001)
    source = rig.folder / "source"
    source.write_bytes(big)
    names = "ä b\n\udcff"
    await link.write_files(
        [
            FileSource("a/b/c.txt", data=b"text", mode=0o640),
            FileSource("run.sh", data=b"", mode=0o4755),
            FileSource("big", data=big),
            FileSource("a/from-disk", file=source),
            FileSource(names, data=b"odd"),
        ]
    )
    root = rig.workspace
    assert (root / "a/b/c.txt").read_bytes() == b"text"
    assert [stat.S_IMODE((root / n).stat().st_mode) for n in ("a/b/c.txt", "run.sh")] == [0o640, 0o755]
    assert (root / "big").read_bytes() == (root / "a/from-disk").read_bytes() == big
    assert (root / names).read_bytes() == b"odd"
    assert not [n for n in os.listdir(root) if n.startswith(".workstead")]  # noqa: PTH208
    if os.geteuid() == 0:
        assert (root / "a/b").stat().st_uid == (root / "big").stat().st_uid == AGENT_UID


async def test_many_small_files_and_ten_megabytes_are_quick(rig: Rig) -> None:
    link = await rig.up()
    await link.write_files([FileSource(f"many/{n}", data=b"%d" % n) for n in range(500)])
    assert len(list((rig.workspace / "many").iterdir())) == 500
    files = [FileSource(f"in/{n}", data=bytes(2_000_000)) for n in range(5)]
    times: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        await link.write_files(files)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.25  # 15 ms on a quiet machine; the bench watches the figure


async def test_a_replaced_file_is_old_or_new_never_half(rig: Rig) -> None:
    link = await rig.up()
    await link.write_file("f", b"old")
    reader = (rig.workspace / "f").open("rb")
    await link.write_file("f", b"new and longer")
    assert reader.read() == b"old"
    reader.close()
    assert await link.read_file("f") == b"new and longer"


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "", ".", "a/.", "n\0"])
async def test_paths_outside_are_refused(rig: Rig, path: str) -> None:
    link = await rig.up()
    for attempt in (link.write_file(path, b"x"), link.read_file(path)):
        with pytest.raises(ToolFailed) as caught:
            await attempt
        assert caught.value.type == "bad_path"


async def test_planted_links_are_not_followed(rig: Rig) -> None:
    link = await rig.up()
    outside = rig.folder / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    (outside / "secret").write_bytes(b"secret")
    (rig.workspace / "dir").symlink_to(outside)
    (rig.workspace / "file").symlink_to(outside / "secret")
    for path in ("dir/secret", "file"):
        with pytest.raises(ToolFailed):
            await link.read_file(path)
    with pytest.raises(ToolFailed):
        await link.write_file("dir/new", b"x")
    await link.write_file("file", b"x")  # the link itself is replaced
    assert not (outside / "new").exists()
    assert (outside / "secret").read_bytes() == b"secret"
    assert not (rig.workspace / "file").is_symlink()


async def test_only_regular_files_are_read(rig: Rig) -> None:
    link = await rig.up()
    os.mkfifo(rig.workspace / "fifo", 0o666)
    (rig.workspace / "fifo").chmod(0o666)
    for path in ("fifo", ".home"):
        with pytest.raises(ToolFailed) as caught:
            await link.read_file(path)
        assert caught.value.type in ("not_a_file", "eisdir")
    with pytest.raises(ToolFailed) as caught:
        await link.read_file("none")
    assert caught.value.type == "enoent"


async def test_read_limit(rig: Rig) -> None:
    link = await rig.up()
    await link.write_file("f", b"x" * 1000)
    assert len(await link.read_file("f", limit_bytes=1000)) == 1000
    with pytest.raises(ToolFailed) as caught:
        await link.read_file("f", limit_bytes=999)
    assert caught.value.type == "too_large"
    assert await link.read_file("f") == b"x" * 1000


async def test_a_failure_spoils_its_batch_only(rig: Rig) -> None:
    link = await rig.up()
    with pytest.raises(ToolFailed) as caught:
        await link.write_files([FileSource("ok", data=b"1"), FileSource("ok/x", data=b"2"), FileSource("z", data=b"3")])
    assert caught.value.type == "enotdir"
    with pytest.raises(ToolFailed) as caught:
        await link.write_file(".home", b"a folder is there")
    assert caught.value.type == "eisdir"
    await link.write_file("fine", b"1")
    assert await link.read_file("fine") == b"1"


async def test_an_unreadable_source(rig: Rig) -> None:
    link = await rig.up()
    with pytest.raises(ToolFailed) as caught:
        await link.write_files([FileSource("a", data=b"1"), FileSource("b", file=Path("/proc/self/mem"))])
    assert caught.value.type == "source_unreadable"
    await link.write_file("c", b"1")  # on a new connection
    assert rig.descriptors() < 20


async def test_the_deadline_is_announced(rig: Rig) -> None:
    link = await rig.up()
    await link.announce_deadline(100)
    said = json.loads((rig.workspace / ".home/deadline").read_text())
    assert abs(said["deadline_unix"] - time.time() - 100) < 20
    (rig.workspace / ".home").rename(rig.workspace / "moved")
    (rig.workspace / ".home").symlink_to(rig.folder)
    await link.announce_deadline(100)  # best effort
    assert not (rig.folder / "deadline").exists()


async def test_a_folder_is_listed_by_name_and_links_are_not_followed(rig: Rig) -> None:
    link = await rig.up()
    await link.write_files([FileSource("a/x.txt", data=b"123"), FileSource("a/sub/y", data=b"")])
    (rig.workspace / "a" / "out").symlink_to("/etc")
    os.mkfifo(rig.workspace / "a" / "pipe")
    listing = await link.list_files("a", limit=100)
    assert [(e.name, e.kind) for e in listing.entries] == [
        ("out", "link"), ("pipe", "other"), ("sub", "directory"), ("x.txt", "file"),
    ]  # fmt: skip
    assert listing.entries[3].size_bytes == 3
    assert abs(listing.entries[3].mtime - time.time()) < 60
    assert {e.name for e in (await link.list_files("", limit=100)).entries} >= {"a", ".home"}
    cut = await link.list_files("a", limit=2)
    assert (len(cut.entries), cut.truncated) == (2, True)
    for path in ("a/out", "a/../a", "/etc", "none"):
        with pytest.raises(ToolFailed):
            await link.list_files(path, limit=100)
