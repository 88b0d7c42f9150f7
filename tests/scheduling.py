"""Which of xdist's workers does what, and in which order: the files that take longest first, so that none is left at the end;
and journeys that share a running service in as few workers as there are lanes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

LANES = 2
"""Services that run beside each other: each takes a tenth of a core when it has nothing to do."""
_HERE = Path(__file__).parent
_JOURNEY_S = 8
_TEST_S = 1
_SECONDS = {
    "journeys/test_chaos.py": 80, "journeys/test_papers.py": 60, "journeys/test_demo.py": 31,
    "journeys/test_desktop.py": 110, "journeys/test_catalogue.py": 60, "journeys/test_benchmarks.py": 60,
    "journeys/test_webhooks.py": 20, "journeys/test_command_line.py": 40, "journeys/test_judge_outage.py": 25,
    "journeys/test_forged_grades.py": 30, "journeys/test_replay.py": 25, "journeys/test_spine.py": 30,
}  # fmt: skip
"""File → about how long it takes, where that is long."""
_TOGETHER = "architecture/"
"""Files that parse the same sources, which one process does once."""
_TOGETHER_S = 45
_ALONE = (
    "acp", "chaos", "cli_faults", "compose", "demo", "desk", "egress", "entry_point", "evaluation", "media", "papers",
    "regrade", "week", "works",
)  # fmt: skip
"""Journeys that start a service of their own."""


def in_order(items: list[pytest.Item]) -> None:
    """Put lanes first, then long files; the order within a file stays."""
    lanes, counts = _lanes(), Counter(_file(item.nodeid) for item in items)

    def rank(item: pytest.Item) -> tuple[bool, str, int]:
        file = _file(item.nodeid)
        takes = _TOGETHER_S if file.startswith(_TOGETHER) else _SECONDS.get(file, counts[file] * _TEST_S)
        return file not in lanes, lanes.get(file, ""), -takes

    items.sort(key=rank)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].rpartition("tests/")[2]


def _lanes() -> dict[str, str]:
    """Deal the journeys to the lanes, each to the one that has least to do so far."""
    full = dict.fromkeys((f"lane {n}" for n in range(LANES)), 0)
    found: dict[str, str] = {}
    for file in sorted(_sharing(), key=lambda file: (-_SECONDS.get(file, _JOURNEY_S), file)):
        lane = min(full, key=full.__getitem__)
        full[lane] += _SECONDS.get(file, _JOURNEY_S)
        found[file] = lane
    return found


def _sharing() -> Iterator[str]:
    for path in _HERE.glob("journeys/test_*.py"):
        if path.stem.removeprefix("test_") not in _ALONE:
            yield path.relative_to(_HERE).as_posix()


class InLanes(LoadScopeScheduling):
    """``--dist loadfile``, but the files of a lane are one piece of work."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._lane_of = _lanes()

    def _split_scope(self, nodeid: str) -> str:
        file = _file(nodeid)
        return _TOGETHER if file.startswith(_TOGETHER) else self._lane_of.get(file, file)


def scheduler(config: pytest.Config, log: Producer) -> InLanes | None:
    """Return ours where files are what is dealt out."""
    return InLanes(config, log) if config.getoption("dist") == "loadfile" else None
