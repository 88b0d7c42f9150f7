"""The file that the documentation shows is one that the service takes, and the published example is the same."""

import json
import re
from pathlib import Path

from service.domain.evaluations import EvaluationSpec
from tests.architecture.repository import ROOT
from workstead.cli.eval.words import read_spec


def test_the_file_of_the_documentation(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "evaluations.md").read_text(), re.DOTALL)
    assert found is not None
    (tmp_path / "week.yaml").write_text(found[1])
    spec = EvaluationSpec.model_validate(read_spec(tmp_path / "week.yaml"))
    example = json.loads((ROOT / "api_schema" / "examples" / "evaluation.json").read_text())
    assert spec.model_dump(mode="json") == example
