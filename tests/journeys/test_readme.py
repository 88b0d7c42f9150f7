"""What README.md tells people to type works against a running service."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys import readme
from tests.journeys.stack import Stack


@pytest.fixture
def output() -> Iterator[Path]:
    """README's commands write here, where git looks away; what was there before stays."""
    folder, kept = readme.ROOT / "demo_output", readme.ROOT / "demo_output.kept"
    if folder.exists():
        folder.rename(kept)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    if kept.exists():
        kept.rename(folder)


def test_quick_start(service: Stack, output: Path) -> None:
    done = readme.run(readme.of("Quick start"), service.url, service.token)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
    assert "2/2" in done.stdout
    assert list(output.glob("deliverables/*/output/answers.json"))


def test_curl_from_nothing_to_a_verdict_twice(service: Stack) -> None:
    first, second = (readme.run(readme.of("The service by hand"), service.url, service.token) for _ in range(2))
    for done in (first, second):
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
        assert '"type":"verdict"' in done.stdout.replace('": "', '":"')
        assert "event: end" in done.stdout
        assert '{"sum": 5}' in done.stdout
        assert "'fraction': 1.0" in done.stdout.splitlines()[-1]
    assert len({t["id"] for t in service.call("GET", "/v1/tasks", params={"name": "readme/sum"})["data"]}) == 1


def test_a_script_that_uses_only_the_client(service: Stack) -> None:
    done = readme.run(readme.of("From Python"), service.url, service.token)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
    assert "output/answers.json" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of 1"
    assert json.dumps(service.token) not in done.stdout


def test_every_section_that_promises_code_has_a_block_that_runs() -> None:
    assert [(b.section, b.language) for b in readme.blocks()] == [
        ("Quick start", "sh"),
        ("The service by hand", "sh"),
        ("From Python", "python"),
    ]
