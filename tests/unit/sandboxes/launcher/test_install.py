"""The launcher's files where the container sees them: complete, readable for the agent's user, the same from one copy."""

from pathlib import Path

from service.sandboxes.docker.link_install import SOURCE, install_launcher


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_shared_files_are_the_same_and_of_one_copy(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    alone, first, second = (tmp_path / name for name in ("alone", "first", "second"))
    install_launcher(alone)
    for target in (first, second):
        install_launcher(target, shared)
    assert listing(alone) == listing(first) == listing(second)
    assert {p.name for p in SOURCE.glob("*.py") if p.stem != "__init__"} <= {p.name for p in first.iterdir()}
    assert all((first / n).stat().st_ino == (second / n).stat().st_ino for n in listing(first))
    assert [p.name for p in shared.iterdir()] == [p.name for p in shared.iterdir() if not p.name.startswith(".")]
    for path in (first, *first.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    shared, target = tmp_path / "shared", tmp_path / "control"
    shared.mkdir()
    target.mkdir()
    (target / "program.py").write_text("older")
    install_launcher(target, shared)
    assert (target / "program.py").read_text() == "older"
    assert (target / "launcher_main.py").exists()
