"""Which host has room, and the reason in words when none has."""

from dataclasses import replace

import pytest

from service.domain.limits import GIB
from service.domain.placement import Capacity, Need, Share, Wait, obstacles, reserving_host, too_large, why_waiting

NEED = Need("base", 2 * GIB, GIB)
HOST = Capacity("h1", 4, ("runc",), ("base",), memory_usable_bytes=8 * GIB, disk_free_bytes=50 * GIB,
                disk_total_bytes=100 * GIB, disk_watermark_bytes=10 * GIB)  # fmt: skip
FREE = Share(0, None)


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"state": "lost"}, Wait.NO_HOST, "no host is up"),
        (
            {"environments": ("desktop",)},
            Wait.IMAGE,
            "no host that is up has image 'base' (`make images` builds those that are shipped)",
        ),
        ({"cordoned": True}, Wait.CORDONED, "every host that could take it is cordoned"),
        ({"state": "draining"}, Wait.CORDONED, "every host that could take it is cordoned"),
        ({"running": 4}, Wait.SLOT, "all 4 slots are taken"),
        ({"running": 1, "slots_limit": 1}, Wait.SLOT, "all 1 slots are taken"),
        ({"disk_free_bytes": 9 * GIB}, Wait.DISK, "the disk has 9 GiB free, and 10 GiB are kept free"),
        ({"memory_promised_bytes": 7 * GIB}, Wait.MEMORY, "needs 2 GiB of memory, 1 GiB free"),
        ({"memory_promised_bytes": 9 * GIB}, Wait.MEMORY, "needs 2 GiB of memory, 0 GiB free"),
        ({"disk_promised_bytes": 100 * GIB}, Wait.DISK, "needs 1 GiB of disk, 0 GiB can be promised"),
        ({}, Wait.SLOT, "a slot is free; earlier runs go first"),
    ],
)
def test_the_reason_is_the_first_thing_that_is_in_the_way(
    changes: dict[str, object], reason: Wait, detail: str
) -> None:
    assert why_waiting([replace(HOST, **changes)], NEED, FREE) == (reason, detail)


def test_no_reason_names_a_host_and_one_host_with_room_suffices() -> None:
    full = replace(HOST, host_id="secret-name", memory_promised_bytes=8 * GIB)
    assert why_waiting([full, HOST], NEED, FREE)[0] is Wait.SLOT
    assert "secret-name" not in why_waiting([full], NEED, FREE)[1]
    assert why_waiting([], NEED, FREE) == (Wait.NO_HOST, "no host is up")
    assert why_waiting([HOST], NEED, Share(3, 3))[0] is Wait.PROJECT_SLOTS
    assert why_waiting([HOST], NEED, Share(2, 3))[0] is Wait.SLOT


def test_an_untrusted_run_needs_a_runtime_that_is_meant_for_it() -> None:
    untrusted = replace(NEED, untrusted=True)
    assert not HOST.offers(untrusted)
    assert replace(HOST, untrusted_runtimes=("runsc",)).offers(untrusted)
    assert not replace(HOST, untrusted_runtimes=("runsc",)).offers(replace(untrusted, runtime="runc"))
    assert not HOST.offers(replace(NEED, runtime="runsc"))


def test_the_emptiest_host_that_could_hold_it_reserves() -> None:
    large = Need("base", 7 * GIB, GIB)
    hosts = [
        replace(HOST, memory_promised_bytes=4 * GIB),
        replace(HOST, host_id="h2", memory_promised_bytes=3 * GIB),
        replace(HOST, host_id="h3", memory_usable_bytes=6 * GIB),
        replace(HOST, host_id="h4", cordoned=True),
    ]
    assert reserving_host(hosts, large) == "h2"
    assert reserving_host(hosts, Need("base", 64 * GIB, GIB)) is None


def test_a_missing_kit_is_a_reason_of_its_own() -> None:
    need = replace(NEED, kit="img_" + "0" * 26)
    assert why_waiting([HOST], need, FREE) == (Wait.IMAGE, f"no host that is up has image {need.kit!r} (hosts load it)")
    having = replace(HOST, environments=(*HOST.environments, str(need.kit)))
    assert having.offers(need)
    assert why_waiting([having], replace(need, runtime="kata"), FREE)[0] is Wait.NO_HOST


def test_what_no_host_can_hold_is_said_with_the_largest() -> None:
    hosts = [HOST, replace(HOST, host_id="h2", memory_usable_bytes=24 * GIB)]
    assert too_large(hosts, Need("base", 64 * GIB, GIB)) == "needs 64 GiB of memory, the largest host has 24 GiB"
    assert (
        too_large(hosts, Need("base", GIB, 300 * GIB)) == "needs 300 GiB of disk, the largest host can promise 200 GiB"
    )
    assert too_large(hosts, Need("base", 24 * GIB, 200 * GIB)) is None
    assert too_large(hosts, Need("desktop", 64 * GIB, GIB)) is None
    assert too_large([replace(HOST, state="lost")], Need("base", 64 * GIB, GIB)) is None
    assert too_large([replace(HOST, memory_usable_bytes=None)], Need("base", 64 * GIB, GIB)) is None


def test_obstacles_of_a_host() -> None:
    assert obstacles(HOST, {"base": 3}) == []
    assert obstacles(HOST, {"kits/codex": 2}) == [
        (
            "image_missing",
            "2 waiting runs need image 'kits/codex' (`make images` builds those that are shipped), which it lacks",
        )
    ]
    crowded = replace(HOST, running=4, disk_promised_bytes=100 * GIB, memory_promised_bytes=8 * GIB, cordoned=True)
    assert [reason for reason, _ in obstacles(crowded, {})] == [
        "cordoned", "waiting_for_slot", "waiting_for_disk", "waiting_for_memory",
    ]  # fmt: skip
    assert obstacles(replace(HOST, state="lost"), {})[0][0] == "lost"
    assert [r for r, _ in obstacles(replace(HOST, state="draining", cordoned=True), {})] == ["draining"]
