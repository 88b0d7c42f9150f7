"""A task directory means the same, read by the client from a disk and by the service from an archive."""

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import Invalid
from service.domain.task_bundle import manifest_json
from service.domain.tasks import TaskManifest
from service.store.blobs import BlobStore
from tests.unit.api.task_trees import TASK, WHOLE, Tree, by_client, by_service, files_below

ROOT = Path(__file__).parents[3]
FILES = {
    "visible/a/x": b"1", "visible/a-b": b"2", "visible/a.txt": b"3", "visible/ä b.csv": b"4", "visible/Z": b"1",
    "hidden/answers.json": b"{}", "hidden/solution/output/r.md": b"done", "other/ignored": b"5", "README": b"6",
}  # fmt: skip
FULL = b"""name = "t"
human_time_s = 90.5
network = "none"
collect = ["output", "notes"]
instruction = "Do."
[limits]
wall_clock_s = 60
[facets]
occupation = "Clerk"
hours = 2
formats = ["pdf"]
[price]
amount = "60.00"
currency = "EUR"
basis = "posted"
rate_date = 2026-05-01
[[graders]]
method = "exact"
settings = { file = "output/a.json" }
[labels]
batch = "one"
"""


@pytest.mark.parametrize(
    "tree", [WHOLE, {**WHOLE, **FILES}, {"task.toml": FULL, **FILES}], ids=["small", "files", "full"]
)
@pytest.mark.parametrize("top", ["", "folder/", "./", "./folder/"])
async def test_both_read_the_same_task(tree: Tree, top: str, tmp_path: Path) -> None:
    ours = await by_service(tree, BlobStore(tmp_path / "blobs"), top)
    assert isinstance(ours, TaskManifest)
    theirs = by_client(tree, tmp_path / "task")
    assert isinstance(theirs, TaskManifest)
    assert (ours, ours.digest()) == (theirs, theirs.digest())


@pytest.mark.parametrize("folder", sorted((ROOT / "demo" / "tasks").iterdir()), ids=lambda p: p.name)
async def test_both_read_the_demo(folder: Path, tmp_path: Path) -> None:
    tree = {str(p.relative_to(folder)): p.read_bytes() for p in files_below(folder)}
    ours = await by_service(tree, BlobStore(tmp_path / "blobs"), "demo/")
    assert ours == by_client(tree, tmp_path / "task")


_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"), min_size=1)
_PATHS = st.lists(_NAMES.filter(lambda n: n not in (".", "..")).map(lambda n: n[:40]), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(_PATHS.map("/".join), st.binary(max_size=20), max_size=6))
async def test_both_read_any_files_in_the_same_order(files: dict[str, bytes]) -> None:
    tree = dict(WHOLE)
    for path, data in files.items():
        if not any(path.startswith(p + "/") or p.startswith(path + "/") for p in files):
            tree[f"visible/{path}"] = data
    with tempfile.TemporaryDirectory() as folder:
        ours = await by_service(tree, BlobStore(Path(folder) / "blobs"))
        assert isinstance(ours, TaskManifest) or any("home" in line for line in ours) or "\x7f" in "".join(tree)
        if isinstance(ours, TaskManifest):
            assert ours == by_client(tree, Path(folder) / "task")


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"instruction.md": b"x"},
        {"task.toml": TASK},
        {"task.toml": TASK + b'instruction = "x"', "instruction.md": b"y"},
        {"task.toml": b'foo = 1\nvisible = []\nhidden = []\nname = "t"', "instruction.md": b"y"},
        {"task.toml": b"name = 5", "instruction.md": b" \n"},
        {"task.toml": b"\xff", "instruction.md": b"\xff"},
        {"task.toml": b"= 1", "instruction.md": b"x"},
        {"task.toml": TASK, "instruction.md": b"x" * 800_001},
        {**WHOLE, "visible": b"a file"},
        {**WHOLE, "task.toml": TASK + b"human_time_s = inf"},
        {**WHOLE, "task.toml": TASK + b"facets = " + b"[" * 9000},
    ],
    ids=range(12),
)
async def test_both_complain_of_the_same(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    theirs = by_client(tree, tmp_path / "task")
    assert isinstance(theirs, list)
    assert await by_service(tree, BlobStore(tmp_path / "blobs"), "") == theirs


@pytest.mark.parametrize("key", ["a.", '"a" . ', "'a'.", '"\\"".', "a.'b'.\"c\"."])
def test_a_key_of_many_parts_costs_nothing(key: str) -> None:
    started = time.perf_counter()
    with pytest.raises(Invalid, match="parts"):
        manifest_json(f"{key * 20_000}a = 1".encode(), b"x", {})
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    "text", ["a" * 700_000, '"' * 700_000, "'a" * 300_000, "a " * 350_000, "a. " * 30 + "x " * 300_000]
)
def test_looking_for_long_keys_takes_no_time(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(Invalid):
        manifest_json(text.encode(), b"x", {})
    assert time.perf_counter() - started < 2


async def test_nothing_of_a_staged_task_is_to_be_seen(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    assert isinstance(await by_service({**WHOLE, **FILES}, blobs), TaskManifest)
    assert files_below(tmp_path) == []
