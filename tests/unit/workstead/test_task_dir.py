"""Task directories and scaffold files: what is read, and every mistake named."""

import os
from pathlib import Path

import pytest

from service.domain.agents import ScaffoldManifest
from service.domain.tasks import TaskManifest
from workstead.scaffold_file import read_scaffold_file
from workstead.task_dir import InvalidInput, read_task_dir


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "task.toml").write_text('name = "t"\n[limits]\nwall_clock_s = 60\n')
    (tmp_path / "instruction.md").write_text("Do it.\n")
    (tmp_path / "visible/a").mkdir(parents=True)
    (tmp_path / "visible/a/x.csv").write_text("1")
    (tmp_path / "visible/ä b.txt").write_text("2")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/answers.json").write_text("{}")
    return tmp_path


def problems(root: Path) -> str:
    with pytest.raises(InvalidInput) as error:
        read_task_dir(root)
    return str(error.value)


def test_gives_a_manifest_that_the_service_takes(task: Path) -> None:
    bundle = read_task_dir(task)
    manifest = TaskManifest.model_validate(bundle.manifest)
    assert [f.path for f in manifest.visible] == ["a/x.csv", "ä b.txt"]
    assert manifest.instruction == "Do it.\n"
    assert {f.sha256 for f in (*manifest.visible, *manifest.hidden)} == set(bundle.files)


def test_names_every_mistake_at_once(task: Path) -> None:
    (task / "task.toml").write_text('visible = []\nfoo = 1\ninstruction = "x"\n')
    (task / "visible/link").symlink_to("/etc/passwd")
    (task / "hidden/dirlink").symlink_to("/etc")
    os.mkfifo(task / "visible/pipe")
    (task / "visible/back\\slash").write_text("")
    said = problems(task)
    for part in (
        "unknown field 'foo'",
        "unknown field 'visible'",
        "name is missing",
        "has an instruction already",
        "visible/link: is a symbolic link",
        "hidden/dirlink: is a symbolic link",
        "visible/pipe: is neither",
        "visible/back\\slash: has a backslash",
    ):
        assert part in said


def test_a_linked_file_or_folder_is_not_followed(task: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "task.toml").write_text('name = "evil"')
    (task / "task.toml").unlink()
    (task / "task.toml").symlink_to(elsewhere / "task.toml")
    (task / "visible").rename(task / "kept")
    (task / "visible").symlink_to(elsewhere)
    said = problems(task)
    assert "task.toml: Too many levels of symbolic links" in said
    assert "visible: is not a directory" in said


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff", "is not UTF-8"), (b" \n", "is empty"), (b"x" * 800_001, "is longer than")]
)
def test_bad_instructions(task: Path, content: bytes, said: str) -> None:
    (task / "instruction.md").write_bytes(content)
    assert f"instruction.md: {said}" in problems(task)


def test_an_empty_folder_says_what_is_missing(tmp_path: Path) -> None:
    said = problems(tmp_path)
    assert "task.toml: No such file" in said
    assert "instruction.md: No such file" in said


def test_a_fifo_does_not_hang(task: Path) -> None:
    (task / "instruction.md").unlink()
    os.mkfifo(task / "instruction.md")
    assert "instruction.md: is not a regular file" in problems(task)


def test_a_scaffold_file_brings_its_sources(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("print(1)")
    manifest = tmp_path / "s.toml"
    manifest.write_text('name = "s"\nversion = "1"\nargv = ["x"]\nfiles = [{ path = "a.py", source = "run.py" }]\n')
    bundle = read_scaffold_file(manifest)
    parsed = ScaffoldManifest.model_validate(bundle.manifest)
    assert parsed.files[0].path == "a.py"
    assert bundle.files[parsed.files[0].sha256] == tmp_path / "run.py"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.toml", "x = [", "Invalid value"),
        ("s.json", "[]", "is not an object"),
        ("s.json", "[" * 100_000, "recursion"),
        ("s.toml", 'files = [{ source = "nope" }]', "files: nope: No such file"),
    ],
)
def test_bad_scaffold_files(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=said):
        read_scaffold_file(tmp_path / name)
