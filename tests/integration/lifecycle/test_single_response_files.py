"""Files that a single response is built into on the real engine, opened by other programs than those that made them."""

import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pypdf
import pytest
from PIL import Image

from service.domain.run_states import EndedBecause
from service.models.scripted.scenario import Scenario
from service.store import artifacts
from tests.integration.lifecycle.docker_stage import DockerStage, docker
from tests.integration.lifecycle.loops import Workshop

__all__ = ["docker"]
pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

MARKUP = "<b onload=alert(1)>&amp; x</b>"
RTL, EMOJI = "שלום עולם", "\N{THUMBS UP SIGN}\N{ZERO WIDTH JOINER}\N{ROCKET}"
HOSTILE = f"{MARKUP} {RTL} {EMOJI} a\x00b\x07c\ufffed"
SHOWN = f"{MARKUP} {RTL} {EMOJI} abcd"
FORMULA = "=cmd|' /C calc'!A0"
BAR, ESCAPED = "|", "\\|"
FILES = {
    "report.md": f"# Report\n{HOSTILE}\n",
    "table.csv": f"name,n\n{FORMULA},1\n",
    "data.json": '{"a": [1, 2]}\n',
    "report.docx": f"# Report\n\nSome **bold** words.\n\n- first\n1. counted\n\n| a | b |\n|---|---|\n| {FORMULA.replace(BAR, ESCAPED)} | x |\n\n{HOSTILE}\n",
    "table.xlsx": f"name,n\n{FORMULA},007\n@SUM(A1),-1.50\n{HOSTILE},12345678901234567890\n",
    "sheets.xlsx": json.dumps({"A/B": [{"x": FORMULA, "y": 1e300}, {"x": None, "z": [1]}], "A:B": [[True]]}),
    "plain.pdf": "# Title\n\nIt costs (about) 5 € — a\\b.\x00\n" + "word " * 40 + "\nend\n" * 100,
    "script.pdf": f"{HOSTILE}\n",
    "picture.png": f"{HOSTILE}\n",
    "endless.docx": "line\n" * 30_000,
    "endless.png": "line\n" * 30_000,
    "huge.xlsx": "x" * 40_000,
}  # fmt: skip
UNBUILT = {"endless.docx", "endless.png", "huge.xlsx"}


@pytest.fixture
async def built(docker: DockerStage, tmp_path: Path) -> AsyncIterator[dict[str, bytes]]:
    """What the run delivered, by path."""
    said = "\n".join(f'<file name="{name}">\n{text}</file>' for name, text in FILES.items())
    scenario = Scenario(name="files", answers=[f"{said}\n<note>As asked.</note>"])
    async with Workshop.open(docker.stage, tmp_path, scenario) as workshop:
        stage = docker.stage
        task = await stage.task(environment="workbench", graders=[])
        run = await stage.submit(task, await workshop.agent("single_response", "files"))
        await stage.work(docker.context(models=workshop.models), run.id)
        row = await stage.row(run.id)
        assert row.ended_because is EndedBecause.COMPLETED, await stage.events(run.id, "agent.final", "note")
        async with stage.db.reading() as tx:
            found = (await artifacts.list(tx, run.id)).items
        warned = " ".join(e.payload["text"] for e in await stage.events(run.id, "agent.warning"))
        assert all(name in warned for name in UNBUILT), warned
        yield {one.path.removeprefix("output/"): stage.blobs.read_bytes(one.sha256) for one in found if one.sha256}


async def test_files_are_what_their_names_say_and_text_stays_data(built: dict[str, bytes]) -> None:
    texts = {f"{name}.txt" for name in UNBUILT}
    assert set(built) >= (set(FILES) - UNBUILT) | texts
    assert not UNBUILT & set(built), "a text is no document, whatever its name"
    for name in ("report.md", "table.csv", "data.json", *UNBUILT):
        got = built[f"{name}.txt" if name in UNBUILT else name].decode()
        assert got.rstrip("\n") == FILES[name].rstrip("\n"), name
    _document(built["report.docx"])
    _sheets(built)
    _pages(built)


def _document(data: bytes) -> None:
    document: Any = docx.Document(io.BytesIO(data))
    read = [(p.style.name, p.text) for p in document.paragraphs]
    assert ("Heading 1", "Report") in read
    assert ("List Bullet", "first") in read
    assert ("List Number", "counted") in read
    assert read[-1] == ("Normal", SHOWN)
    (table,) = document.tables
    assert [[c.text for c in row.cells] for row in table.rows] == [["a", "b"], [FORMULA, "x"]]
    assert any(run.bold and run.text == "bold" for p in document.paragraphs for run in p.runs)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert "<b onload" not in archive.read("word/document.xml").decode()


def _sheets(built: dict[str, bytes]) -> None:
    (sheet,) = openpyxl.load_workbook(io.BytesIO(built["table.xlsx"])).worksheets
    rows = [[(c.value, c.data_type) for c in row] for row in sheet.iter_rows()]
    assert rows[1] == [(FORMULA, "s"), ("007", "s")]
    assert rows[2] == [("@SUM(A1)", "s"), (-1.5, "n")]
    assert rows[3] == [(SHOWN, "s"), ("12345678901234567890", "s")]
    book = openpyxl.load_workbook(io.BytesIO(built["sheets.xlsx"]))
    assert len(book.sheetnames) == 2
    first = [[c.value for c in row] for row in book.worksheets[0].iter_rows()]
    assert first == [["x", "y", "z"], [FORMULA, "1e+300", None], [None, None, "[1]"]]
    assert not any(c.data_type == "f" for s in book.worksheets for row in s.iter_rows() for c in row)


def _pages(built: dict[str, bytes]) -> None:
    plain = pypdf.PdfReader(io.BytesIO(built["plain.pdf"]))
    text = "\n".join(page.extract_text() for page in plain.pages)
    assert "It costs (about) 5 € — a\\b." in text
    assert (text.count("word"), text.count("end")) == (40, 100)
    assert len(plain.pages) > 1
    drawn = pypdf.PdfReader(io.BytesIO(built["script.pdf"]))
    assert [len(page.images) for page in drawn.pages] == [1]
    with Image.open(io.BytesIO(built["picture.png"])) as picture:
        assert picture.format == "PNG"
        shades = picture.convert("L").histogram()
        assert shades[0] > 100, "nothing is drawn"
