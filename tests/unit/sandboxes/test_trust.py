"""An untrusted project's work needs gVisor or a runc without known escapes, and a hard quota."""

from typing import Any

import pytest

from service.sandboxes.docker.trust import untrusted_runtimes


def _versions(runc: str) -> dict[str, Any]:
    return {"Components": [{"Name": "Engine", "Version": "99"}, {"Name": "runc", "Version": runc}]}


@pytest.mark.fault(10)
@pytest.mark.parametrize(("runc", "expected"), [
    ("1.1.5+ds1", ["runsc-planted"]), ("1.3.5", ["runsc-planted"]), ("", ["runsc-planted"]),
    ("unknown", ["runsc-planted"]), ("1.3.6", ["runc", "runsc-planted"]), ("v1.4.0-rc.3", ["runc", "runsc-planted"]),
])  # fmt: skip
def test_runc_counts_from_the_floor_on(runc: str, expected: list[str]) -> None:
    assert untrusted_runtimes(["runc", "runsc-planted"], _versions(runc), soft_quota=False) == expected


def test_a_soft_quota_is_good_for_nobody() -> None:
    assert untrusted_runtimes(["runc", "runsc-planted"], _versions("9.0"), soft_quota=True) == []


def test_an_engine_that_names_no_components_offers_gvisor_only() -> None:
    assert untrusted_runtimes(["runc", "runsc-planted"], {}, soft_quota=False) == ["runsc-planted"]
