import pytest

from service.domain.agents import Driver
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
