"""Downloads and where they may be written."""

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workstead.fake_api import Cut, Script, client, problem, run_body
from workstead.cli.fetch import UnsafePath, below, fetch, folder_name
from workstead.errors import Disconnected, NotFound
from workstead.models import Run


async def test_goes_on_by_range_after_a_cut(tmp_path: Path) -> None:
    script = Script(
        httpx.Response(200, headers={"ETag": '"a"'}, stream=Cut([b"hello "])),
        httpx.Response(206, headers={"ETag": '"a"', "Content-Range": "bytes 6-10/11"}, content=b"world"),
    )
    async with client(script) as api:
        assert await api.runs.download("run_1", "output/a b%.txt", tmp_path / "x") == 11
    assert (tmp_path / "x").read_bytes() == b"hello world"
    assert script.requests[1].headers["If-Range"] == '"a"'
    assert script.requests[0].url.raw_path == b"/v1/runs/run_1/artifacts/output/a%20b%25.txt"


async def test_starts_anew_when_the_content_changed(tmp_path: Path) -> None:
    script = Script(
        httpx.Response(200, headers={"ETag": '"a"'}, stream=Cut([b"old part"])), httpx.Response(200, content=b"new")
    )
    async with client(script) as api:
        assert await api.runs.download("run_1", "f", tmp_path / "x") == 3
    assert (tmp_path / "x").read_bytes() == b"new"


@pytest.mark.parametrize("answers", [[problem(404, "not_found")], [httpx.ConnectError("away")] * 4])
async def test_a_failed_download_leaves_no_file(tmp_path: Path, answers: list[httpx.Response | Exception]) -> None:
    async with client(Script(*answers)) as api:
        with pytest.raises((NotFound, Disconnected)):
            await api.runs.download("run_1", "f", tmp_path / "x")
    assert not (tmp_path / "x").exists()


async def test_never_writes_over_a_file_or_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    async with client(Script()) as api:
        for name in ("victim", "link"):
            with pytest.raises(FileExistsError):
                await api.runs.download("run_1", "f", tmp_path / name)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\\b", "a\x1b[2J", "a\nb\x00", "x" * 256]
)
def test_unsafe_paths_are_refused(path: str) -> None:
    with pytest.raises(UnsafePath):
        below(Path("folder"), path)


@given(st.text())
def test_a_path_never_leaves_the_folder(path: str) -> None:
    try:
        target = below(Path("/folder"), path)
    except UnsafePath:
        return
    assert Path("/folder") in target.parents


@given(st.text())
def test_folder_names_are_one_component(text: str) -> None:
    name = folder_name(text)
    assert name
    assert "/" not in name
    assert name not in (".", "..")


def files_below(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]


async def test_only_files_are_fetched(tmp_path: Path) -> None:
    entries = [{"path": "output", "kind": "directory"}, {"path": "output/l", "kind": "skipped_symlink"}]
    listing = httpx.Response(200, json={"data": [*entries, {"path": "output/a/b.txt"}], "next": None})
    async with client(Script(listing, httpx.Response(200, content=b"b"))) as api:
        fetched = await fetch(api, Run.model_validate(run_body()), tmp_path)
    assert fetched is not None
    assert files_below(fetched.folder) == ["output/a/b.txt"]


async def test_a_name_that_cannot_be_written_costs_that_file_only(tmp_path: Path) -> None:
    listing = httpx.Response(200, json={"data": [{"path": "a\x1b[2J"}, {"path": "../b"}, {"path": "c"}], "next": None})
    async with client(Script(listing, httpx.Response(200, content=b"c"))) as api:
        fetched = await fetch(api, Run.model_validate(run_body()), tmp_path)
    assert fetched is not None
    assert (fetched.files, len(fetched.skipped)) == (1, 2)
    assert files_below(tmp_path) == [f"{fetched.folder.name}/c"]
    assert "\x1b" not in "".join(fetched.skipped)


async def test_nothing_delivered_makes_no_folder(tmp_path: Path) -> None:
    async with client(Script(httpx.Response(200, json={"data": [], "next": None}))) as api:
        assert await fetch(api, Run.model_validate(run_body()), tmp_path) is None
    assert files_below(tmp_path) == []
