"""The example of docs/task-bundles.md is a task, and says what the schema says."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema

from service.api.archive_types import ARCHIVE_TYPES
from service.domain.task_bundle import FIELDS
from service.domain.tasks import Price, TaskManifest
from service.graders import registry as graders
from service.store.blobs import BlobStore
from tests.unit.api.task_trees import EXAMPLE, PAGE, by_client, by_service

ROOT = Path(__file__).parents[3]


async def test_the_example_is_a_task(tmp_path: Path) -> None:
    assert set(EXAMPLE) >= {"task.toml", "instruction.md", "visible/invoices/may.csv", "hidden/answers.json"}
    task = await by_service(EXAMPLE, BlobStore(tmp_path / "blobs"), "invoice-check/")
    assert isinstance(task, TaskManifest)
    assert task == by_client(EXAMPLE, tmp_path / "task")
    for spec in task.graders:
        graders.check(spec, task)


def test_the_example_fits_the_published_schema_and_shows_every_field() -> None:
    schema = json.loads((ROOT / "api_schema" / "task_toml.schema.json").read_text())
    said = tomllib.loads(EXAMPLE["task.toml"].decode())
    as_json = json.loads(json.dumps(said, default=str))
    validator: Any = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    validator.validate(as_json)
    assert set(said) == FIELDS - {"instruction"}
    assert set(said["price"]) == set(Price.model_fields)
    assert set(schema["properties"]) == FIELDS
    assert not validator.is_valid({**as_json, "visible": []})


def test_every_content_type_is_named() -> None:
    named = {name for name in ARCHIVE_TYPES if f"`{name}`" in PAGE}
    assert set(ARCHIVE_TYPES) - named == {"application/x-gzip", "application/x-zip-compressed"}
