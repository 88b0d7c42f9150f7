"""Evidence through the whole service: a folder is graded, its document asked for, and a grader killed while it makes it."""

from pathlib import Path

import pytest
from PIL import Image

from tests.docker import sample_files as made
from tests.journeys.jobs import make_task
from tests.journeys.stack import Stack
from workstead import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.mark.fault(111)
def test_a_document_is_made_although_its_maker_is_killed(service: Stack, tmp_path: Path) -> None:
    folder = tmp_path / "delivered"
    folder.mkdir()
    (folder / "report.pdf").write_bytes(made.printed("BT /F1 12 Tf 10 150 Td (The total is 42) Tj ET"))
    (folder / "letter.docx").write_bytes(made.letter())
    (folder / "note.md").write_text("# Note")
    with Client(service.url, service.token) as client:
        run = client.deliverables.grade(make_task(service), folder)
        assert client.evidence.make(run.id).state == "pending"
        service.kill("grader")
        found = client.evidence.wait(run.id)
        assert found.state == "ready", found
        files = {f.path.rpartition("/")[2]: f for f in found.files}
        assert {name: f.state for name, f in files.items()} == dict.fromkeys(files, "extracted")
        assert "The total is 42" in "".join(p.text for p in files["report.pdf"].parts)
        picture = next(i for i in files["report.pdf"].images if i.source == "page")
        client.evidence.image(run.id, picture.sha256, tmp_path / "page.png")
        with Image.open(tmp_path / "page.png") as page:
            assert page.size == (picture.width, picture.height)
        assert client.evidence.make(run.id).made_at == found.made_at
