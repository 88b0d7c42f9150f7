"""Which tasks a command means."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.fake_api import Script, client, problem
from workstead.cli.selection import Candidate, Narrowing, NothingSelected, select, task_directories
from workstead.errors import NotFound

MANY = [
    Candidate(f"set/{i}", f"task_{i}", {"kind": "even" if i % 2 == 0 else "odd", "tags": ["a", i]}) for i in range(20)
]


def names(narrowing: Narrowing) -> list[str]:
    return [c.name for c in narrowing.apply(MANY)]


def test_globs_take_and_leave() -> None:
    assert names(Narrowing(include=["set/1", "set/2*"])) == ["set/1", "set/2"]
    assert names(Narrowing(include=["*/1?"], exclude=["*5", "*6"]))[:6] == [
        f"set/{i}" for i in (10, 11, 12, 13, 14, 17)
    ]
    assert names(Narrowing(include=["SET/1"])) == []


def test_facets_hold_together_and_a_list_by_any_of_its_values() -> None:
    assert names(Narrowing(facets={"kind": "odd", "tags": "3"})) == ["set/3"]
    assert names(Narrowing(facets={"kind": "odd", "tags": "4"})) == []
    assert names(Narrowing(facets={"none": "None"})) == []


def test_the_limit_takes_the_first_and_with_a_seed_a_sample_that_it_repeats() -> None:
    assert names(Narrowing(limit=3)) == ["set/0", "set/1", "set/2"]
    first = names(Narrowing(limit=5, seed=7))
    assert first == names(Narrowing(limit=5, seed=7))
    assert first != names(Narrowing(limit=5))
    assert names(Narrowing(limit=5, seed=8)) != first
    backwards = [c.name for c in Narrowing(limit=5, seed=7).apply(reversed(MANY))]
    assert backwards == first


def task_dir(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(f'name = "{name}"\n[facets]\nkind = "x"\n')
    (folder / "instruction.md").write_text("Do it.\n")
    return folder


def answer(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def task(number: int, name: str, **manifest: Any) -> dict[str, Any]:
    return {"id": f"task_{number}", "name": name, "digest": "sha256:0", "manifest": manifest}


async def test_directories_are_narrowed_before_anything_travels(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        task_dir(tmp_path / name, f"dir/{name}")
    script = Script(answer(**task(1, "dir/a")), answer(**task(2, "dir/b")))
    async with client(script) as api:
        found = await select(api, [str(tmp_path)], Narrowing(exclude=["*/c"], facets={"kind": "x"}))
    assert found == ["task_1", "task_2"]
    assert [b'"dir/a"' in body for body in script.bodies] == [True, False]


async def test_ids_names_and_benchmarks() -> None:
    bench = {"id": "bench_1", "name": "set", "version": "2"}
    items = [
        {"key": "one", "task": {"id": "task_5"}},
        {"key": "none", "task": None},
        {"key": "two", "task": {"id": "task_1"}},
    ]
    script = Script(
        answer(**task(1, "first")),
        answer(data=[task(2, "n"), task(3, "n")], next=None),
        answer(data=[bench], next=None),
        answer(data=items, next=None),
    )
    async with client(script) as api:
        found = await select(api, ["task_1", "n", "benchmark:set@2"], Narrowing())
    assert found == ["task_1", "task_3", "task_5"]  # the version made last; task_1 is meant twice
    assert dict(script.requests[2].url.params) | {"limit": ""} == {"name": "set", "version": "2", "limit": ""}
    assert script.requests[3].url.params.get_list("status") == ["ok", "disputed"]


async def test_facets_of_a_benchmark_are_the_services_question() -> None:
    script = Script(
        answer(data=[{"id": "bench_1", "name": "set", "version": "2"}], next=None),
        answer(data=[{"key": "one", "task": {"id": "task_5"}}], next=None),
    )
    async with client(script) as api:
        assert await select(api, ["benchmark:set"], Narrowing(facets={"split": "easy"})) == ["task_5"]
    assert script.requests[1].url.params["facet.split"] == "easy"


async def test_nothing_meant_is_said(tmp_path: Path) -> None:
    async with client(Script(answer(data=[], next=None))) as api:
        with pytest.raises(NothingSelected, match="no directory here"):
            await select(api, ["nobody"], Narrowing())
    with pytest.raises(NothingSelected, match=r"task\.toml"):
        task_directories(tmp_path)
    async with client(Script(answer(**task(1, "first")))) as api:
        with pytest.raises(NothingSelected, match="none of the 1"):
            await select(api, ["task_1"], Narrowing(include=["other"]))
    async with client(Script(problem(404, "not_found"))) as api:
        with pytest.raises(NotFound):
            await select(api, ["task_9"], Narrowing())
