"""What is published is what the code says, and what it answers."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from service.api import schema
from tests.api.helpers import Tenant, file_entry

PUBLISHED = Path(__file__).parents[2] / "api_schema"


def _validator(name: str) -> Any:
    found = json.loads((PUBLISHED / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found, format_checker=jsonschema.FormatChecker())


def test_published_schemas_are_those_of_the_code() -> None:
    assert schema.check(PUBLISHED) == []


def test_two_dumps_are_equal_and_drift_is_seen(tmp_path: Path) -> None:
    assert len(schema.dump(tmp_path)) == len(("openapi.json", "tables.json")) + len(schema.DOCUMENTS)
    assert schema.dump(tmp_path) == []
    (tmp_path / "run.schema.json").write_text("{}")
    (tmp_path / "event.schema.json").unlink()
    assert len(schema.check(tmp_path)) == 2


@pytest.mark.parametrize("path", sorted((PUBLISHED / "examples").glob("*.json")), ids=lambda p: p.stem)
def test_examples_fit(path: Path) -> None:
    example = json.loads(path.read_text())
    _validator(path.stem).validate(example)
    known = json.loads((PUBLISHED / f"{path.stem}.schema.json").read_text())["properties"]
    assert set(example) == set(known)


async def test_answers_fit(tenant: Tenant) -> None:
    run = await tenant.run(labels={"a": "b"})
    attempt = await tenant.start(run["id"])
    await tenant.say(attempt, "x")
    await tenant.seal(attempt, [file_entry("output/a", b"1")])
    _validator("run").validate(await tenant.get(f"/v1/runs/{run['id']}"))
    for event in (await tenant.get(f"/v1/runs/{run['id']}/events"))["data"]:
        _validator("event").validate(event)
    task = await tenant.get(f"/v1/tasks/{run['task']['id']}")
    _validator("task_bundle").validate(task["manifest"])


def test_every_operation_has_a_stable_id() -> None:
    paths: dict[str, dict[str, Any]] = json.loads((PUBLISHED / "openapi.json").read_text())["paths"]
    ids = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(ids) == len(set(ids)) >= 35
    assert all(i.replace("_", "").isalnum() and i.islower() for i in ids)
