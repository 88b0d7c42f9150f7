"""What a host says of its machine; a disk that hangs holds up no heartbeat."""

import threading
from pathlib import Path

import pytest

from service.workers import gauge as module
from service.workers.gauge import Machine, MachineGauge, Reserve, measure_disks

GIB = 1 << 30


def test_the_tightest_disk_counts_and_what_cannot_be_seen_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"data": (1000 * GIB, 0, 500 * GIB), "engine": (100 * GIB, 0, 20 * GIB)}
    for name in sizes:
        (tmp_path / name).mkdir()

    def usage(path: Path) -> _Usage:
        return _Usage(*sizes[path.name])

    monkeypatch.setattr(module.shutil, "disk_usage", usage)
    disks = {name: tmp_path / name for name in sizes} | {"away": tmp_path / "away"}
    facts = measure_disks(disks, Reserve())
    assert set(facts["disks"]) == {"data", "engine"}
    assert facts["disks"]["data"]["watermark_bytes"] == 10 * GIB
    assert (facts["disk_free_bytes"], facts["disk_total_bytes"], facts["disk_watermark_bytes"]) == (
        20 * GIB, 100 * GIB, 10 * GIB,
    )  # fmt: skip
    small = measure_disks({"engine": tmp_path / "engine"}, Reserve(disk_fraction=0.05))
    assert small["disk_watermark_bytes"] == 5 * GIB
    assert measure_disks({}, Reserve()) == {}


class _Usage:
    def __init__(self, total: int, used: int, free: int) -> None:
        self.total, self.used, self.free = total, used, free


async def test_memory_is_what_the_engine_says_less_a_part(tmp_path: Path) -> None:
    gauge = MachineGauge(Machine(10 * GIB, 8, {"data": tmp_path}, "1.2"), Reserve())
    facts = await gauge.read()
    gauge.close()
    assert (facts["memory_total_bytes"], facts["memory_usable_bytes"]) == (10 * GIB, 9 * GIB)
    assert (facts["cpus"], facts["version"], facts["disk_overcommit"]) == (8, "1.2", 2.0)
    assert facts["disk_free_bytes"] > 0
    silent = MachineGauge(Machine(0, 8, {}, "1.2"), Reserve())
    assert "memory_usable_bytes" not in await silent.read()
    silent.close()


async def test_a_disk_that_hangs_is_left_out_and_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going, calls = threading.Event(), list[str]()

    def hang(*_: object) -> dict[str, int]:
        calls.append("asked")
        going.wait(20)
        return {"disk_free_bytes": 1}

    monkeypatch.setattr(module, "measure_disks", hang)
    monkeypatch.setattr(module, "READ_S", 0.05)
    gauge = MachineGauge(Machine(GIB, 1, {"data": tmp_path}, "1"), Reserve())
    for _ in range(3):
        facts = await gauge.read()
        assert facts["memory_total_bytes"] == GIB
        assert "disk_free_bytes" not in facts
    going.set()
    monkeypatch.setattr(module, "READ_S", 10)
    assert (await gauge.read())["disk_free_bytes"] == 1
    assert calls == ["asked"]
    gauge.close()
