"""Nothing that an agent printed may act on a terminal."""

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.unit.workstead.fake_api import run_body
from workstead.cli.describe import describe
from workstead.cli.tables import results_table, runs_table, verdict_table
from workstead.cli.watch import Watched, progress
from workstead.models import Event, Run
from workstead.terminal import one_line, safe

EVIL = "\x1b]0;title\x07\r\x1b[2J[bold red]x[/] \x9b31m \u202eabc over\x08\x00[link=http://x]y[/link]"


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    kept = safe(text)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in kept)
    assert not any(c in kept for c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b\x1b[2J!", "!"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_sequences_go_as_a_whole(text: str, kept: str) -> None:
    assert safe(text) == kept


def test_every_display_is_inert() -> None:
    run = Run.model_validate(
        run_body(EVIL, phase="done", outcome=EVIL, ended_because=EVIL)
        | {"task": {"id": "t", "name": EVIL}, "agent": {"id": "a", "label": EVIL}}
    )
    watched = Watched(run, EVIL, EVIL)
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system=None, width=200)
    for table in (runs_table([run]), results_table([run]), verdict_table([run]), progress([watched])):
        console.print(table)
    printed = file.getvalue()
    for bad in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\x08", "\x00", "\r"):
        assert bad not in printed
    assert "[bold red]x[/]" in printed


@given(
    st.sampled_from(["run.phase", "output", "verdict", "deliverable.sealed", "attempt.ended", "new.type"]), st.text()
)
def test_descriptions_of_any_payload_are_safe(kind: str, text: str) -> None:
    names = ("phase", "outcome", "text", "method", "state", "files", "bytes", "digest", "ended_because", "x")
    for said in describe(Event(seq=1, type=kind, payload=dict.fromkeys(names, text))):
        assert said == safe(said)
        assert "\n" not in said


def test_long_output_is_cut_with_a_count() -> None:
    said = describe(Event(seq=1, type="output", payload={"text": "\n".join(map(str, range(100)))}))
    assert len(said) == 7
    assert said[-1] == "… 94 more lines"
