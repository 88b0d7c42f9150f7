import pytest

from service.scaffolds import registry, shipped


def test_each_is_accepted_and_named_once() -> None:
    names = [f"{row.name}@{row.version}" for row in shipped.SHIPPED]
    assert len(set(names)) == len(names)
    assert {"claude-code@2.1.332", "codex@0.171.0", "gemini-cli@0.61.0"} <= set(names)
    for row in shipped.SHIPPED:
        registry.check(row)
        if row.kit is None:
            continue
        assert (row.minimum is None) == (row.kit is None)
        # The default of a task is 10 GiB: a minimum must not blow up small tasks.
        assert row.minimum is None or row.minimum.disk_bytes <= 1 << 30


def test_latest_is_the_newest_version() -> None:
    found = shipped.find("codex@latest")
    assert found is not None
    assert found.name == "codex"
    assert shipped.find("codex@0.171.0") is not None


@pytest.mark.parametrize("reference", ["codex@9.9.9", "other@latest", "codex", "@", ""])
def test_what_is_not_shipped(reference: str) -> None:
    assert shipped.find(reference) is None


@pytest.mark.parametrize(
    ("versions", "newest"),
    [(["0.9.0", "0.10.0"], "0.10.0"), (["2026.3.8", "2026.10.1"], "2026.10.1"), (["1.0-rc1", "1.0"], "1.0"), ([], None),
     (["b", "a"], "b"), (["1", "1.0.1"], "1.0.1")],
)  # fmt: skip
def test_order(versions: list[str], newest: str | None) -> None:
    assert shipped.newest(versions) == newest
