"""A condition changes what it names and nothing else, and every document stays one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, Part
from service.lifecycle.probing import conditions as c
from service.lifecycle.probing.injections import BENIGN, INJECTIONS, Injection


def file(path: str, *texts: str, images: int = 0) -> EvidenceFile:
    picture = EvidenceImage(
        label="page", source="page", sha256="b" * 64, media_type="image/png", width=1, height=1, size_bytes=1
    )
    parts = tuple(Part(kind="text", text=t) for t in texts)
    return EvidenceFile(
        path=path,
        sha256="a" * 64,
        size_bytes=9,
        kind="text",
        state="extracted",
        parts=parts,
        images=(picture,) * images,
    )


WORK = EvidenceDocument(files=(file("output/a.txt", "x" * 40, "y" * 40), file("output/b.pdf", images=8)))


def text_of(document: EvidenceDocument) -> str:
    return "".join(p.text for f in document.files for p in f.parts)


def everything_of(document: EvidenceDocument) -> str:
    return text_of(document) + "".join(f.path for f in document.files)


@given(st.lists(st.lists(st.text(max_size=30), max_size=4), max_size=5))
def test_a_quarter_is_the_beginning_and_a_quarter(texts: list[list[str]]) -> None:
    document = EvidenceDocument(files=tuple(file(f"f{n}", *parts) for n, parts in enumerate(texts)))
    whole, found = text_of(document), c.quarter(document)
    assert text_of(found) == whole[: len(whole) // 4]


def test_a_quarter_of_pictures_too() -> None:
    found = c.quarter(WORK)
    assert [len(f.images) for f in found.files] == [0, 2]


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda i: i.family)
def test_an_injection_is_in_the_document_once_and_the_rest_stays(injection: Injection) -> None:
    found = c.injected(WORK, injection)
    assert everything_of(found).count(injection.text) == 1
    assert text_of(WORK) in text_of(found).replace(injection.text, "")
    EvidenceDocument.model_validate_json(found.model_dump_json())
    assert injection.text in everything_of(c.injected(EvidenceDocument(), injection))


def test_ten_families() -> None:
    assert len({i.family for i in INJECTIONS}) == 10


def test_additions_take_no_path_twice() -> None:
    found = c.with_note(c.with_note(WORK, BENIGN["note"]), BENIGN["listing"])
    assert len({f.path for f in found.files}) == 4


def test_order_and_length() -> None:
    assert [f.path for f in c.reversed_files(WORK).files] == ["output/b.pdf", "output/a.txt"]
    assert len(text_of(c.lengthened(WORK))) > len(text_of(WORK)) + 15_000


def test_another_differs_or_is_none() -> None:
    other = EvidenceDocument(files=(file("output/z.txt", "z"),))
    assert c.another(WORK, [WORK, other], 0) is other
    assert c.another(WORK, [WORK, WORK], 1) is None
    assert c.another(WORK, [], 0) is None


def test_nothing_is_said_to_be_nothing() -> None:
    assert "No files" in text_of(c.nothing(WORK))
