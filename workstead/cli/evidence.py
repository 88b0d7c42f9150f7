"""``workstead evidence …``: what graders see of a deliverable."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import RunId, emit, fail, in_words, line
from workstead.cli.options import Json
from workstead.models_evidence import Evidence, EvidenceFile, EvidenceOmitted
from workstead.sync import Client
from workstead.terminal import one_line

evidence_app = typer.Typer(help="What graders see of a deliverable.", no_args_is_help=True)

OneFile = Annotated[str | None, typer.Option("--file", help="Only this one, by its path")]
Pictures = Annotated[Path | None, typer.Option("--images", help="New folder for the pictures")]
BRIEF = 2000
"""Characters of a part that are shown of a whole document."""


@evidence_app.command("show")
@in_words
def show_evidence(run_id: RunId, file: OneFile = None, images: Pictures = None, as_json: Json = False) -> None:
    """Show what a run's files say, what is hidden in them, and what was left out; made now if it is not there.

    Of a whole deliverable long texts are cut; with --file one file is shown whole. Exit code 1 if it cannot be made.
    """
    with Client() as client:
        found = client.evidence.get(run_id)
        if found.state != "ready":
            client.evidence.make(run_id)
            found = client.evidence.wait(run_id)
        if found.state != "ready":
            raise fail(f"no evidence: {found.cause or found.state}")
        if file is not None:
            found = client.evidence.get(run_id, file)
        if images is not None:
            _fetch(client, found, images)
    emit(found) if as_json else _show(found, whole=file is not None)


def _fetch(client: Client, found: Evidence, folder: Path) -> None:
    folder.mkdir()
    for picture in {i.sha256: i for f in found.files for i in f.images}.values():
        ext = "png" if picture.media_type == "image/png" else "jpg"
        client.evidence.image(found.run_id, picture.sha256, folder / f"{picture.sha256[:16]}.{ext}")


def _show(found: Evidence, *, whole: bool) -> None:
    for file in found.files:
        _show_file(file, whole=whole)
    for path, kind in found.skipped:
        line(f"{one_line(path, 400)}: {one_line(kind, 40)}, not sealed", "dim")
    if found.not_listed:
        line(f"{found.not_listed} more files, not looked at", "dim")


def _show_file(file: EvidenceFile, *, whole: bool) -> None:
    line(
        f"{one_line(file.path, 400)}  {one_line(file.kind, 64)}, {file.size_bytes} bytes, {one_line(file.state, 64)}",
        "bold",
    )
    if file.error:
        line(f"  {one_line(file.error, 64)}: {one_line(file.detail or '', 500)}", "red")
    said = [f"{name} {value}" for name, value in file.facts.items()]
    for text in (", ".join(said), *file.notes, _omitted(file.omitted)):
        if text:
            line(f"  {one_line(text, 1000)}", "dim")
    for part in file.parts:
        line(f"  — {one_line(' '.join((part.kind, part.label)), 500)}", "dim")
        line(
            part.text
            if whole or len(part.text) <= BRIEF
            else f"{part.text[:BRIEF]}\n  … {len(part.text) - BRIEF} more characters"
        )
    for image in file.images:
        line(f"  — picture {one_line(image.label, 400)}, {image.width} x {image.height}: {image.sha256[:16]}", "dim")


def _omitted(left: EvidenceOmitted) -> str:
    counts = {"characters": left.chars, "rows": left.rows, "parts": left.parts, "pictures": left.images}
    found = [f"{many} {what}" for what, many in counts.items() if many]
    return f"left out: {', '.join(found)}" if found else ""
