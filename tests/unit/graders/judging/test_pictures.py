import pytest

from service.domain.evidence import EvidenceDocument, EvidenceImage
from service.graders.contract import GraderFault, GradingInput
from service.graders.judging import pictures
from service.graders.judging.settings import JudgingSettings
from service.graders.judging.showing import evidence_of, material_of, nothing_delivered
from tests.unit.graders.judged import Evidence, delivered, given, picture

MIB = 1 << 20


def sized(label: str, size: int) -> EvidenceImage:
    return picture(label).model_copy(update={"size_bytes": size})


async def test_pictures_are_bounded_one_by_one_and_together() -> None:
    sizes = [5 * MIB, 4 * MIB, 4 * MIB, 3 * MIB, 2 * MIB, MIB]
    images = tuple(sized(f"{n}", size) for n, size in enumerate(sizes))
    document = EvidenceDocument(files=(delivered("a.pdf", "x", images=images),))
    source = Evidence(document)
    found = await pictures.pictures_of(source, document)
    assert [p.label for p in found.shown] == ["1", "2", "3", "5"]
    assert found.left_out == 2
    assert len(source.read) == 4


@pytest.mark.parametrize("settings", [JudgingSettings(images="never"), JudgingSettings(reading="opening")])
async def test_where_none_are_shown_none_are_read(settings: JudgingSettings) -> None:
    source = Evidence(EvidenceDocument(files=(delivered("a.png", images=(picture("a"),)),)))
    material = await material_of(_given(source), settings, images=True)
    assert (material.pictures.shown, source.read, material.shown(1, images=True).images) == ((), [], [])


def _given(source: Evidence | None) -> GradingInput:
    return given({}, [], None, evidence=source)


def test_a_process_without_evidence_says_so() -> None:
    with pytest.raises(GraderFault) as caught:
        evidence_of(_given(None))
    assert caught.value.type == "grader_unavailable"


@pytest.mark.parametrize(
    ("file", "nothing"),
    [
        (delivered("a.md", "x"), False),
        (delivered("a.md", " \n"), True),
        (delivered("a.md", size_bytes=0, state="listed"), True),
        (delivered("a.stl", state="listed", size_bytes=9), False),
        (delivered("a.mp3", facts={"duration_s": 3.0}, size_bytes=9), False),
        (delivered("a.png", images=(picture("a"),), size_bytes=9), False),
        (delivered("a.pdf", state="failed", error="cannot_open", size_bytes=9), False),
    ],
)
def test_nothing_delivered_is_nothing_to_look_at(file: object, nothing: bool) -> None:
    assert nothing_delivered(EvidenceDocument.model_validate({"files": (file,)})) is nothing


def test_files_beyond_the_list_are_something() -> None:
    assert not nothing_delivered(EvidenceDocument(not_listed=3))
