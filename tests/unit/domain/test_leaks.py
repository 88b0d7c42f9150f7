"""The leak scan: each kind is found, ordinary tables hold nothing, a finding's name is the text's own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.blinding import Names
from service.domain.leaks import Scan


def found(text: str, *names: str) -> list[tuple[str, str]]:
    scan = Scan(Names.of(names))
    scan.file("a.txt", text)
    return [(f.kind, f.shown) for f in scan.findings()]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("key sk-ant-" + "a1B2" * 6, "key"),
        ("sk-proj-" + "Ab1" * 10, "key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "key"),
        ("AKIA" + "A1B2C3D4E5F6G7H8", "key"),
        ("AIza" + "x" * 35, "key"),
        ("ghp_" + "a1" * 18, "token"),
        ("wst_AbCdEfGh_" + "x" * 43, "token"),
        ("Authorization: Bearer abcdefghijklmnop1234", "token"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "token"),
        ("write to ann.lee+x@mail.example.co.uk today", "email"),
        ("see https://intranet.example/a?b=1).", "url"),
        ("call +49 170 123 4567", "phone"),
        ("call (030) 1234-5678", "phone"),
        ("call +491701234567", "phone"),
    ],
)
def test_each_kind_is_found(text: str, kind: str) -> None:
    assert [one[0] for one in found(text)] == [kind]


def test_secrets_are_hardly_shown() -> None:
    (one,) = found("ghp_" + "a1" * 18)
    assert one == ("token", "ghp_…")


def test_names_are_found_in_texts_and_file_names() -> None:
    assert found("made by Acme-Model 5", "acme/model-5")
    scan = Scan(Names.of(["worker-17"]))
    scan.file("logs/worker-17.txt", None)
    assert [f.kind for f in scan.findings()] == ["name"]


@pytest.mark.parametrize(
    "text",
    [
        "run_01J9Z8Q7W6E5R4T3Y2U1P0A9S8,2026-11-30T21:10:00.123456Z,0.123456789,12345678901",
        "sha256:" + "0123456789abcdef" * 4,
        '{"category": ["art", "law"], "n": 12.5}',
        "2026-11-30 1234.5678 1e-10 -0.5",
        "jobbench-paper@1 rubric.3 task_0 ask_me_about_everything_in_here",
        '<svg xmlns="http://www.w3.org/2000/svg">',
    ],
)
def test_ordinary_tables_hold_nothing(text: str) -> None:
    assert found(text) == []


def test_the_same_text_is_one_finding_with_its_places() -> None:
    scan = Scan()
    for n in range(9):
        scan.file(f"{n}.csv", "ann@example.com ann@example.com")
    (one,) = scan.findings()
    assert one.places == ("0.csv", "1.csv", "2.csv", "3.csv", "4.csv")
    other = Scan()
    other.file("x", "ann@example.com")
    assert other.findings()[0].name == one.name


@given(st.text(max_size=200))
def test_any_text_can_be_looked_through(text: Any) -> None:
    for kind, shown in found(text):
        assert shown
        assert kind in ("key", "token", "url", "email", "phone")
