from typing import Any

import pytest
from pydantic import ValidationError

from service.domain.limits import GIB, MIB, Limits
from service.domain.paths import check_relative_path
from service.domain.tasks import TaskManifest, canonical_digest


def task(**fields: Any) -> TaskManifest:
    return TaskManifest.model_validate({"name": "t", "instruction": "i", **fields})


def ref(path: str) -> dict[str, Any]:
    return {"path": path, "sha256": "a" * 64, "size_bytes": 1}


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/../b", ".", "a/.", "a\\b", "a\0b", "a\nb", "x" * 1025, "\ud800"])
def test_paths_that_are_not_clean_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        check_relative_path(path)


@pytest.mark.parametrize("path", ["a", "a/b.c", "ü/€", ".hidden", "a b"])
def test_clean_paths_stay_as_they_are(path: str) -> None:
    assert check_relative_path(path) == path


@pytest.mark.parametrize(
    "fields",
    [
        {"visible": [ref("a"), ref("a")]},
        {"visible": [ref("a"), ref("a/b")]},
        {"visible": [ref(".home/x")]},
        {"collect": ["output", "output/x"]},
        {"unknown": 1},
        {"limits": {"memory_bytes": 1}},
        {"facets": {"a": {}}},
    ],
)
def test_manifests_that_cannot_work_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        task(**fields)


def test_the_digest_is_of_the_content() -> None:
    assert task().digest() == task().digest()
    assert task().digest() != task(instruction="j").digest()
    assert canonical_digest({"b": 1, "a": "ü"}) == canonical_digest({"a": "ü", "b": 1})


def test_the_larger_need_wins_and_clocks_are_the_tasks() -> None:
    limits = Limits(memory_bytes=4 * GIB, cpus=1, wall_clock_s=10)
    widened = limits.widened(Limits(memory_bytes=GIB, cpus=2, shm_bytes=128 * MIB, wall_clock_s=999))
    assert (widened.memory_bytes, widened.cpus, widened.shm_bytes, widened.wall_clock_s) == (4 * GIB, 2, 128 * MIB, 10)
    assert limits.widened(None) is limits
