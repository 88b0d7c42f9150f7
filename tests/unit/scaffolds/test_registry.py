from typing import get_args

import pytest

from service.domain.agents import ScaffoldManifest
from service.domain.errors import Invalid
from service.scaffolds import registry


def test_every_kind_of_the_manifest_is_registered() -> None:
    assert set(registry.KINDS) == set(get_args(ScaffoldManifest.model_fields["kind"].annotation))
    for kind in registry.KINDS:
        assert registry.scaffold_for(kind) is registry.scaffold_for(kind)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Invalid):
        registry.scaffold_for("magic")
