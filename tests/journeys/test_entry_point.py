"""A scaffold kind that an installed package brings is conformed like ours: found by its entry point, in every process."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.entry_point import sample_scaffold
from tests.journeys.stack import stack, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]
METADATA = "Metadata-Version: 2.1\nName: sample-scaffold\nVersion: 1\n"
ENTRY_POINTS = "[workstead.scaffolds]\nsample = sample_scaffold:SampleScaffold\n"


def installed(folder: Path) -> Path:
    """Put the package where an installer would."""
    shutil.copy(sample_scaffold.__file__, folder / "sample_scaffold.py")
    facts = folder / "sample_scaffold-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(METADATA)
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def test_a_packages_own_kind_passes_the_quick_conformance(tmp_path: Path) -> None:
    found_by = os.pathsep.join(filter(None, [str(installed(tmp_path)), os.environ.get("PYTHONPATH", "")]))
    with stack(PYTHONPATH=found_by) as service:
        manifest = {"name": "theirs", "version": "1", "kind": "sample", "dialect": "openai"}
        refused = service.http.post("/v1/scaffolds", json={**manifest, "argv": ["x"]})
        assert refused.status_code == 422, refused.text
        service.call("POST", "/v1/scaffolds", json=manifest)
        operation = service.call("POST", "/v1/scaffolds/theirs@1/conformance", json={"quick": True})

        def ended() -> dict[str, Any] | None:
            seen = service.call("GET", f"/v1/operations/{operation['id']}", params={"wait_s": 5})
            return seen if seen["state"] not in {"queued", "running"} else None

        told = wait_until("the operation has ended", ended, 330)
        listed = service.call("GET", "/v1/scaffolds/theirs@1/conformance")["data"]
        wrong = {each["case"]: (each["result"], each["wrong"]) for each in listed}
        assert wrong == {case: ("pass", []) for case in ("success", "401", "429")}, told
