import pytest

from service.domain.agents import Driver, ScaffoldManifest
from service.domain.errors import Invalid
from service.scaffolds import registry


def test_every_kind_can_be_loaded_and_says_who_drives() -> None:
    for kind in registry.KINDS:
        assert isinstance(registry.scaffold_for(kind).driver, Driver)


def test_a_kind_is_loaded_once() -> None:
    for kind in registry.KINDS:
        assert registry.scaffold_for(kind) is registry.scaffold_for(kind)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Invalid):
        registry.scaffold_for("magic")


WORDS = {
    "name": "acme.1",
    "actions": {"look": {"type": "screenshot"}},
    "golden": [{"payload": {"action": "look"}, "actions": [{"type": "screenshot"}]}],
}


def test_a_manifest_brings_words_for_the_screen() -> None:
    manifest = ScaffoldManifest(name="mine", version="1", kind="remote", vocabulary=WORDS)
    registry.check(manifest)
    assert manifest.digest() != ScaffoldManifest(name="mine", version="1", kind="remote").digest()


@pytest.mark.parametrize(
    ("kind", "words", "type"),
    [("remote", {**WORDS, "golden": []}, "bad_vocabulary"), ("nop", WORDS, "surface_not_supported")],
)
def test_words_that_do_not_hold_are_refused(kind: str, words: dict[str, object], type: str) -> None:
    with pytest.raises(Invalid) as refused:
        registry.check(ScaffoldManifest(name="mine", version="1", kind=kind, vocabulary=words))
    assert refused.value.type == type
