"""Notes and tags that people put on runs and their events (NEEDS B18)."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlalchemy import ColumnElement, Select, func, select

from service.domain.cleaning import clean_str
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.paging import Sort, fetch_page
from service.store.rows import Converters, Page, Row, Slice
from service.store.tables_evaluations import run_notes

MOST = 1_000
"""Of one run."""


@dataclass(frozen=True, slots=True)
class NoteRow(Row):
    id: str
    run_id: str
    seq: int | None
    """Number of the event that it is about; null: the run as a whole."""
    author: str
    body: str
    tags: tuple[str, ...]
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"tags": tuple}


@dataclass(frozen=True, slots=True)
class NewNote:
    author: str
    body: str = ""
    tags: tuple[str, ...] = ()
    seq: int | None = None


async def add(tx: Tx, project_id: str, run_id: str, new: NewNote) -> NoteRow:
    """Put a note on a run of the project."""
    values = {
        "id": new_id("note"), "project_id": project_id, "run_id": run_id, "seq": new.seq, "author": new.author,
        "body": clean_str(new.body)[0], "tags": [clean_str(tag)[0] for tag in new.tags],
    }  # fmt: skip
    row = (await tx.execute(run_notes.insert().values(values).returning(run_notes))).mappings().one()
    return NoteRow.of(row)


async def count(tx: Tx, run_id: str) -> int:
    query = select(func.count()).where(run_notes.c.run_id == run_id, run_notes.c.deleted.is_(False))
    return (await tx.execute(query)).scalar_one()


async def page(tx: Tx, project_id: str, which: Page, *, run_id: str | None = None, tag: str | None = None,
               words: str | None = None) -> Slice[NoteRow]:  # fmt: skip
    """Return notes of the project, newest first: of one run, with this tag, with this text in them (case does not matter).

    Raises Invalid("invalid_cursor" | "invalid_limit").
    """
    c = run_notes.c
    wanted: list[ColumnElement[bool]] = [c.project_id == project_id, c.deleted.is_(False)]
    if run_id is not None:
        wanted.append(c.run_id == run_id)
    if tag is not None:
        wanted.append(c.tags.contains([clean_str(tag)[0]]))
    if words is not None:
        wanted.append(c.body.icontains(clean_str(words)[0], autoescape=True))
    query: Select[tuple[object, ...]] = select(run_notes).where(*wanted)
    rows, following = await fetch_page(tx, query, Sort(c.created_at, descending=True), c.id, which)
    return Slice([NoteRow.of(row) for row in rows], following)


async def delete(tx: Tx, project_id: str, run_id: str, note_id: str) -> bool:
    """Take a note away; False if there is none (or it is another run's). Its text is gone, that it was there is not."""
    c = run_notes.c
    mine = (c.id == note_id, c.run_id == run_id, c.project_id == project_id, c.deleted.is_(False))
    query = run_notes.update().where(*mine).values(deleted=True, body="", tags=[])
    return bool((await tx.execute(query)).rowcount)
