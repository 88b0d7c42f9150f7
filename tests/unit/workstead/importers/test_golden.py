"""The synthetic sets give exactly these manifests. ``WORKSTEAD_WRITE_GOLDEN=1`` writes them anew, to be reviewed."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from demo.benchmarks.make import make
from service.graders.test_cases.settings import TestCasesSettings
from service.graders.test_cases.tests_file import TestsFile
from tests.unit.workstead.importers.sets import DEMO, GOLDEN, checked, read, without_content

ROOT = DEMO.parents[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("sets") / "sets")


def compare(name: str, manifest: dict[str, Any]) -> None:
    path = GOLDEN / f"{name}.json"
    if os.environ.get("WORKSTEAD_WRITE_GOLDEN"):
        path.write_text(json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    assert manifest == json.loads(path.read_text())


def test_the_published_schema_takes_them() -> None:
    schema = json.loads((ROOT / "api_schema/benchmark_manifest.schema.json").read_text())
    for shape in ("shape_a", "shape_b"):
        with read("freelance", DEMO / f"freelance/{shape}.json") as imported:
            jsonschema.validate(imported.manifest, schema)


def test_shape_a() -> None:
    with read("freelance", DEMO / "freelance/shape_a.json", solutions=DEMO / "freelance/solutions") as imported:
        checked(imported)
        compare("freelance_a", imported.manifest)


def test_shape_b() -> None:
    with read("freelance", DEMO / "freelance/shape_b.json", disputed=DEMO / "freelance/disputed.json") as imported:
        checked(imported)
        compare("freelance_b", imported.manifest)


def test_jobbench(made: Path) -> None:
    with read("jobbench", made / "jobbench", categories=made / "jobbench/categories.json") as imported:
        checked(imported)
        compare("jobbench", without_content(imported.manifest))


def test_the_grading_method_takes_every_task() -> None:
    for shape in ("shape_a", "shape_b"):
        with read("freelance", DEMO / f"freelance/{shape}.json") as imported:
            tasks = [item.task for item in checked(imported).items if item.task is not None]
            assert len(tasks) == 5
            for task in tasks:
                settings = TestCasesSettings.model_validate(task.graders[0].settings)
                hidden = {ref.path: imported.files[ref.sha256] for ref in task.hidden}
                TestsFile.model_validate_json(hidden[settings.tests].read_text())


def test_the_same_source_gives_the_same_manifest_wherever_it_lies(made: Path, tmp_path: Path) -> None:
    again = make(tmp_path / "elsewhere")
    for kind, path in (("jobbench", "jobbench"), ("freelance", "freelance/shape_b.json")):
        with read(kind, made / path) as one, read(kind, again / path) as other:
            assert one.manifest == other.manifest


def test_what_was_made_goes_with_the_import() -> None:
    with read("freelance", DEMO / "freelance/shape_a.json") as imported:
        files = list(imported.files.values())
        assert files
        assert all(path.is_file() for path in files)
    assert not any(path.exists() for path in files)
