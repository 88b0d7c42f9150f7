"""What is checked without a service is what the service checks."""

from pathlib import Path
from typing import Any, cast

import pytest

from demo.make_files import make
from service.domain import tasks
from workstead.named_paths import missing_paths
from workstead.task_dir import read_task_dir
from workstead.task_model import TaskManifest, manifest_problems

GOOD: dict[str, Any] = {"name": "t", "instruction": "Do it."}


def bare(schema: Any) -> Any:
    """Return a schema without the words in it, and with enums and constants written the same way."""
    if isinstance(schema, list):
        return [bare(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    kept: dict[str, Any] = {k: bare(v) for k, v in parts.items() if k not in ("title", "description")}
    if len(kept.get("enum", ())) == 1:
        kept["const"] = kept.pop("enum")[0]
    return kept


def test_the_schemas_are_the_same() -> None:
    ours, theirs = (bare(model.model_json_schema()) for model in (TaskManifest, tasks.TaskManifest))
    # The one enum of the service has a definition of its own.
    theirs["properties"]["network"] = {**theirs["$defs"].pop("NetworkPolicy"), "default": "none"}
    assert ours == theirs


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "a b"}, "/name: String should match"),
        ({"limits": {"wall_clock_s": 0}}, "/limits/wall_clock_s: Input should be greater than 0"),
        ({"limits": {"speed": 1}}, "/limits/speed: Extra inputs"),
        ({"collect": ["output", "output/x"]}, "/: collect roots"),
        ({"collect": ["../x"]}, "/collect/0: a path is relative"),
        ({"price": {"amount": "5", "currency": "USD", "basis": "posted", "min": "6"}}, "/price: a price has min"),
        ({"graders": [{"method": "test_cases"}]}, "/graders/0/settings: hidden/tests.json is not there"),
        ({"graders": [{"method": "exact", "settings": {"expected": {"hidden": "a.json"}}}]}, "hidden/a.json is not"),
        ({"instruction": ""}, "/instruction: String should have at least 1"),
    ],
)
def test_problems_have_a_pointer(fields: dict[str, Any], said: str) -> None:
    found = manifest_problems({**GOOD, **fields})
    assert len(found) == 1
    assert said in found[0]


def test_good_tasks_have_none(tmp_path: Path) -> None:
    assert manifest_problems(GOOD) == []
    for folder in make(tmp_path):
        assert manifest_problems(read_task_dir(folder).manifest) == []


@pytest.mark.parametrize(
    ("instruction", "missing"),
    [
        ("Read /workspace/in/a b.csv. Write /workspace/output/x.csv", []),
        ("Look into /workspace/in, then /workspace/in/gone.csv", ["in/gone.csv"]),
        ("Use /workspace/input please", ["input please"]),
        ("Deliver to /workspace/outputs", ["outputs"]),
        ("Files are in /workspace/.", []),
    ],
)
def test_named_paths(instruction: str, missing: list[str]) -> None:
    manifest = {"instruction": instruction, "visible": [{"path": "in/a b.csv"}], "collect": ["output"]}
    assert missing_paths(manifest) == missing
