from pathlib import Path

import pytest

from sandbox_images.catalogue import Catalogue, Image, RootImage, load


def _catalogue(**parents: str) -> Catalogue:
    images = {name: Image(name, parent, "", Path(name)) for name, parent in parents.items()}
    return Catalogue(RootImage("debian:bookworm-slim", "bookworm"), images)


def test_parents_come_first_whatever_the_order_of_the_rows() -> None:
    catalogue = _catalogue(desktop="workbench", base="root", workbench="base")
    assert [image.name for image in catalogue.ordered()] == ["base", "workbench", "desktop"]


def test_named_images_bring_their_parents_only() -> None:
    catalogue = _catalogue(base="root", workbench="base", other="base")
    assert [image.name for image in catalogue.ordered(["workbench"])] == ["base", "workbench"]


@pytest.mark.parametrize(
    ("parents", "message"), [({"a": "b", "b": "a"}, "cycle"), ({"a": "nowhere"}, "no image 'nowhere'")]
)
def test_nonsense_is_refused(parents: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _catalogue(**parents).ordered()


def test_tag_follows_bytes_modes_names_and_parent(tmp_path: Path) -> None:
    script = tmp_path / "smoke.sh"
    script.write_text("true\n")
    image = Image("base", "root", "", tmp_path)
    tags = {image.tag("root:a"), image.tag("root:b")}
    script.write_text("false\n")
    tags.add(image.tag("root:a"))
    script.chmod(0o755)
    tags.add(image.tag("root:a"))
    script.rename(tmp_path / "other.sh")
    tags.add(image.tag("root:a"))
    assert len(tags) == 5


def test_caches_do_not_change_the_tag(tmp_path: Path) -> None:
    image = Image("base", "root", "", tmp_path)
    before = image.tag("root:a")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert image.tag("root:a") == before


def test_the_shipped_catalogue_is_whole() -> None:
    assert {"base", "workbench"} <= {image.name for image in load().ordered()}
