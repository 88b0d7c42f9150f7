"""What a user may say to every importer, and what is refused in words."""

from pathlib import Path

import pytest

from tests.unit.workstead.importers.sets import DEMO, checked, read
from workstead.importers.contract import ImportOptions
from workstead.importers.registry import IMPORTERS, importer_for
from workstead.task_dir import InvalidInput

SOURCE = DEMO / "freelance/shape_b.json"


def test_every_importer_can_be_had_and_explains_its_settings() -> None:
    for name in IMPORTERS:
        importer = importer_for(name)
        assert importer is not None
        assert importer.name == name
        assert all(importer.settings_help().values())
    assert importer_for("nobody") is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"speed": "fast"}, "known options: .*visibility"),
        ({"visibility": "all"}, "'strict' or 'rule_only'"),
        ({"visibility": "rule_only"}, "rules=FILE"),
        ({"per_test_s": "nan"}, "per_test_s"),
        ({"environment": "../x"}, "environment"),
        ({"revision": "a\x1bb"}, "revision"),
    ],
)
def test_bad_settings(settings: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read("freelance", SOURCE, **settings)


def test_name_and_version() -> None:
    importer = importer_for("freelance")
    assert importer is not None
    with importer.read(SOURCE, ImportOptions(name="mine/x", version="2026.1")) as imported:
        manifest = checked(imported)
        assert (manifest.name, manifest.version) == ("mine/x", "2026.1")
    with importer.read(SOURCE, ImportOptions(settings={"revision": "0123456789abcdef"})) as imported:
        manifest = checked(imported)
        assert (manifest.version, manifest.source.revision) == ("0123456789ab", "0123456789abcdef")
    with pytest.raises(InvalidInput, match="--name"):
        importer.read(SOURCE, ImportOptions(name="a b"))
    with pytest.raises(InvalidInput, match="--version"):
        importer.read(SOURCE, ImportOptions(version="../1"))


def test_other_content_has_another_version(tmp_path: Path) -> None:
    changed = tmp_path / "shape_b.json"
    changed.write_text(SOURCE.read_text().replace("A comma", "A comma."))
    with read("freelance", SOURCE) as one, read("freelance", changed) as other:
        assert one.manifest["version"] != other.manifest["version"]


def test_notice_deny_list_and_canaries_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "notice").write_text("Cite us.\n")
    (tmp_path / "deny").write_text("# hosts\nanswers.example.test\n\n*.leaks.example.test\n")
    (tmp_path / "canaries").write_text("BENCHMARK-CANARY 7d1f\n")
    files = {"notice": tmp_path / "notice", "deny": tmp_path / "deny", "canaries": tmp_path / "canaries"}
    with read("freelance", SOURCE, **files) as imported:
        manifest = checked(imported)
    assert manifest.notice == "Cite us.\n"
    assert manifest.deny_list == ["answers.example.test", "*.leaks.example.test"]
    assert manifest.canaries == ["BENCHMARK-CANARY 7d1f"]
    (tmp_path / "deny").write_text("http://answers.example.test/x y\n")
    with pytest.raises(InvalidInput, match="not usable"):
        read("freelance", SOURCE, deny=tmp_path / "deny")


def test_progress_is_told_item_by_item() -> None:
    importer, seen = importer_for("freelance"), list[tuple[int, int]]()
    assert importer is not None
    importer.read(SOURCE, ImportOptions(on_item=lambda done, total: seen.append((done, total)))).close()
    assert seen == [(n, 6) for n in range(1, 7)]
