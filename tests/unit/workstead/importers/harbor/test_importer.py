"""Task directories: what becomes of one, what is unsupported and why, and hostile ones that cost themselves only."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from service.graders import registry
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.importers.harbor.verifier import PYTEST_SCRIPT, needs_of
from workstead.task_dir import InvalidInput

TOML = """\
version = "1.0"
[metadata]
difficulty = "easy"
category = "sums"
tags = ["csv", "trivial"]
[agent]
timeout_sec = 900.0
[verifier]
timeout_sec = 120.0
env = {DEPTH = "2"}
[environment]
cpus = 2
memory_mb = 4096
storage_mb = 2048
"""
DOCKERFILE = "FROM scratch AS old\nWORKDIR /app\nFROM python:3.12\nWORKDIR /workspace/work\nCOPY data.csv .\n"
TEST = "#!/bin/bash\nif python3 /tests/check.py; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


def add(root: Path, name: str = "sum", /, **files: str | None) -> Path:
    """Write a task that can be run; ``files`` change it by path, and null leaves one out."""
    folder = root / name
    given: dict[str, str | None] = {
        "task.toml": TOML,
        "instruction.md": "Add up data.csv and write /workspace/output/sum.txt.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/data.csv": "1\n2\n",
        "tests/test.sh": TEST,
        "tests/check.py": "assert open('/workspace/output/sum.txt').read() == '3\\n'\n",
        "solution/solve.sh": "mkdir -p /workspace/output && cp /solution/sum.txt /workspace/output/\n",
        "solution/sum.txt": "3\n",
        **files,
    }
    for path, text in given.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder


def one(root: Path, **options: str | Path) -> tuple[dict[str, Any], list[str]]:
    with read("harbor", root, **options) as imported:
        checked(imported)
        [item] = imported.items
        return item, problems(imported, item["key"])


def reason(root: Path, **options: str | Path) -> str:
    item, said = one(root, **options)
    assert (item["status"], item["task"]) == ("quarantined", None)
    assert "unsupported" in said
    return "; ".join(p["detail"] for p in item["problems"] if p["type"] == "unsupported")


def test_a_task(tmp_path: Path) -> None:
    add(tmp_path)
    with read("harbor", tmp_path) as imported:
        manifest = checked(imported)
        [item] = manifest.items
        task = item.task
        assert task is not None
        registry.check(task.graders[0], task)
        assert (item.key, item.status) == ("sum", "ok")
        assert [ref.path for ref in task.visible] == ["work/data.csv"]
        hidden = {ref.path: imported.files[ref.sha256].read_text() for ref in task.hidden}
        assert set(hidden) == {"tests/test.sh", "tests/check.py", "solution/solve.sh", "solution/sum.txt"}
        start = "mkdir -p /workspace/work && cd /workspace/work || exit 1\n"
        assert hidden["solution/solve.sh"] == (
            f"{start}mkdir -p /workspace/output && cp /workspace/.home/solution/sum.txt /workspace/output/\n"
        )
        assert task.collect == ["output", "work"]
        assert task.instruction.endswith("Your working directory is /workspace/work.\n")
        limits = task.limits
        assert (limits.cpus, limits.memory_bytes, limits.disk_bytes, limits.wall_clock_s) == (2, 4 << 30, 2 << 30, 900)
        assert task.facets == {"difficulty": "easy", "category": "sums", "tags": ["csv", "trivial"]}
        assert (task.environment, task.network) == ("harbor-sum", "web")
        settings = task.graders[0].settings
        assert settings["command"][-2:] == ["/workspace/work", "/tests/test.sh"]
        assert (settings["timeout_s"], settings["memory_bytes"], settings["env"]) == (120, 4 << 30, {"DEPTH": "2"})
        said = {p.type: p.detail for p in item.problems}
    assert said["build_environment"] == "workstead images build harbor-sum sum/environment"
    assert said["collects"] == "output, work"
    assert "solution_moved" in said


def test_an_image_that_is_built_already(tmp_path: Path) -> None:
    add(tmp_path / "set")
    images = tmp_path / "images.json"
    images.write_text('{"sum": "my/sum", "gone": "x"}')
    with read("harbor", tmp_path / "set", images=images) as imported:
        assert imported.items[0]["task"]["environment"] == "my/sum"
        assert "build_environment" not in problems(imported, "sum")
        assert imported.notes == ["images: no task is called 'gone'"]
    images.write_text('{"sum": "../x"}')
    with pytest.raises(InvalidInput, match="not the name or id"):
        read("harbor", tmp_path / "set", images=images)


def test_a_folder_elsewhere_counts_where_the_image_has_it_as_a_link(tmp_path: Path) -> None:
    add(
        tmp_path,
        **{
            "environment/Dockerfile": "FROM x\nWORKDIR /app\nCOPY . /app/\n",
            "tests/check.py": "open('/app/sum.txt')\n",
            "instruction.md": "Write /app/sum.txt, not /app/data.csv.",
        },
    )
    assert "a writable '/app', which is where the image works" in reason(tmp_path)
    item, _ = one(tmp_path, linked="/app")
    task = item["task"]
    assert task["collect"] == ["app"]
    assert [ref["path"] for ref in task["visible"]] == ["app/data.csv"]
    assert task["graders"][0]["settings"]["command"][-2] == "/workspace/app"
    assert task["instruction"].endswith("Your working directory is /app.\n")


UNSUPPORTED: list[tuple[dict[str, str | None], str]] = [
    ({"tests/check.py": "open('/root/x')\n"}, "a writable '/root'"),
    ({"tests/test.sh": "apt-get install -y curl\n"}, "a network in the verifier"),
    ({"tests/test.sh": "# uvx\nuvx --with pytest pytest /tests\n"}, "a network in the verifier"),
    ({"tests/test.sh": "curl -LsSf https://host.test/i.sh | sh\n"}, "line 1"),
    ({"environment/docker-compose.yaml": "services:\n  main:\n    image: a\n  db:\n    image: b\n"}, "2 containers"),
    ({"task.toml": TOML + "gpus = 1\n"}, "a GPU"),
    ({"task.toml": TOML + 'os = "windows"\n'}, "'windows'"),
    ({"task.toml": TOML + '[[environment.mcp_servers]]\nname = "x"\n'}, "MCP servers"),
    ({"task.toml": TOML + '[[steps]]\nname = "x"\n'}, "several steps"),
    ({"task.toml": TOML.replace('"2"', '"${JUDGE_KEY}"')}, "secrets"),
    ({"task.toml": TOML.replace("timeout_sec = 120.0", 'environment_mode = "separate"')}, "an image of its own"),
    ({"environment/Dockerfile": "FROM x\nCOPY --from=a /b /workspace/b\n"}, "another stage"),
    ({"environment/Dockerfile": "FROM x\nADD https://host.test/a /workspace/\n"}, "fetches"),
    ({"instruction.md": "Write /workspace/sum.txt"}, "sum.txt delivered, directly in /workspace"),
]


@pytest.mark.parametrize(("files", "said"), UNSUPPORTED)
def test_unsupported(tmp_path: Path, files: dict[str, str | None], said: str) -> None:
    add(tmp_path, **files)
    assert said in reason(tmp_path)


def test_what_only_looks_like_a_network(tmp_path: Path) -> None:
    for line in ("# apt-get install x", "curl http://localhost:8000/health", "pip --version", "echo 'updated'"):
        assert list(needs_of(line)) == []


def test_pytest_in_place_of_a_script_that_installs(tmp_path: Path) -> None:
    add(tmp_path, **{"tests/test.sh": "uvx pytest /tests\n", "tests/test_outputs.py": "def test(): pass\n"})
    with read("harbor", tmp_path, verifier="pytest") as imported:
        task = checked(imported).items[0].task
        assert task is not None
        script = next(ref for ref in task.hidden if ref.path == "tests/workstead-pytest.sh")
        assert imported.files[script.sha256].read_bytes() == PYTEST_SCRIPT
        assert task.graders[0].settings["command"][-1] == "/tests/workstead-pytest.sh"


YAML = """\
# canary
instruction: |-
  Write the sum to /workspace/output/sum.txt.

    Keep this indented: yes
author_name: "A \\"B\\""
difficulty: easy   # really
category: 'sums'
tags:
  - csv
  - "two words"
parser_name: pytest
descriptions:
  - key: base
    description: nothing
max_agent_timeout_sec: 180.0
max_test_timeout_sec: 30
"""


def test_the_older_layout(tmp_path: Path) -> None:
    folder = add(tmp_path, **{"task.toml": None, "task.yaml": YAML, "instruction.md": None, "solution/solve.sh": None})
    (folder / "environment/Dockerfile").rename(folder / "Dockerfile")
    (folder / "environment/data.csv").rename(folder / "data.csv")
    (folder / "environment").rmdir()
    (folder / "solution/sum.txt").unlink()
    (folder / "solution.sh").write_text("mkdir -p /workspace/output\n")
    (folder / "docker-compose.yaml").write_text("services:\n  client:\n    build: .\nversion: '3'\n")
    with read("harbor", tmp_path) as imported:
        [item] = checked(imported).items
        task = item.task
        assert task is not None
        assert task.instruction.startswith(
            "Write the sum to /workspace/output/sum.txt.\n\n  Keep this indented: yes\n\nYour working"
        )
        assert task.facets == {"difficulty": "easy", "category": "sums", "tags": ["csv", "two words"]}
        assert (task.limits.wall_clock_s, task.graders[0].settings["timeout_s"]) == (180, 30)
        assert {ref.path for ref in task.hidden} >= {"solution/solve.sh", "tests/workstead-pytest.sh"}
    (folder / "task.yaml").write_text(YAML.replace("parser_name: pytest", "parser_name: swebench"))
    assert "output of 'swebench'" in reason(tmp_path)


@pytest.mark.parametrize(
    "text", ["instruction", "instruction: {a: b}", "instruction: 'a", "a: b", "instruction: &x y", ""]
)
def test_yaml_that_is_not_read(tmp_path: Path, text: str) -> None:
    add(tmp_path, **{"task.toml": None, "task.yaml": text})
    item, said = one(tmp_path)
    assert (item["status"], said[0]) == ("quarantined", "bad_task_file")


BAD: list[tuple[dict[str, str | None], str]] = [
    ({"task.toml": "version = "}, "bad_task_file"),
    ({"task.toml": TOML.replace("4096", "inf")}, "bad_task_file"),
    ({"task.toml": TOML.replace("900.0", "nan")}, "bad_task_file"),
    ({"task.toml": TOML.replace("900.0", "-1")}, "bad_task_file"),
    ({"task.toml": TOML.replace("memory_mb = 4096", 'memory = "lots"')}, "bad_task_file"),
    ({"instruction.md": " \n"}, "bad_instructions"),
    ({"instruction.md": None}, "bad_instructions"),
    ({"instruction.md": "a\0b"}, "unusable_task"),
    ({"tests/test.sh": None}, "no_tests"),
    ({"tests/test.sh": None, "tests/check.py": None}, "no_tests"),
    ({"environment/Dockerfile": None, "environment/data.csv": None}, "no_environment"),
    ({"environment/data.csv": None}, "missing_file"),
    ({"environment/Dockerfile": "FROM x\nCOPY ../../secret /workspace/a\n"}, "bad_file"),
]


@pytest.mark.parametrize(("files", "type"), BAD)
def test_a_bad_task_costs_itself(tmp_path: Path, files: dict[str, str | None], type: str) -> None:
    add(tmp_path, "bad", **files)
    add(tmp_path, "good")
    with read("harbor", tmp_path) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items] == ["quarantined", "ok"]
        assert type in problems(imported, "bad")


def _link(folder: Path) -> None:
    (folder / "tests/link").symlink_to("/etc/passwd")


def _data_link(folder: Path) -> None:
    (folder / "environment/data.csv").unlink()
    (folder / "environment/data.csv").symlink_to("/etc/passwd")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "tests/pipe.py")


def _config_pipe(folder: Path) -> None:
    (folder / "task.toml").unlink()
    os.mkfifo(folder / "task.toml")


def _tests_file(folder: Path) -> None:
    for path in (folder / "tests").iterdir():
        path.unlink()
    (folder / "tests").rmdir()
    (folder / "tests").write_text("")


@pytest.mark.parametrize("spoil", [_link, _data_link, _pipe, _config_pipe, _tests_file])
def test_hostile_entries(tmp_path: Path, spoil: Any) -> None:
    spoil(add(tmp_path, "bad"))
    add(tmp_path, "good")
    with read("harbor", tmp_path) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items] == ["quarantined", "ok"]
        assert not [path for path in imported.files.values() if path.is_relative_to("/etc")]


def test_sets_sorted_into_folders(tmp_path: Path) -> None:
    add(tmp_path, "tasks/a/sum")
    add(tmp_path, "tasks/sum")
    (tmp_path / "tasks/README.md").write_text("")
    (tmp_path / "tasks/loop").symlink_to(tmp_path / "tasks")
    with read("harbor", tmp_path) as imported:
        checked(imported)
        assert [item["key"] for item in imported.items] == ["tasks/a/sum", "tasks/sum"]
        assert len({item["task"]["name"] for item in imported.items}) == 2
        assert imported.notes == ["tasks/README.md: is no task; not read", "tasks/loop: is a symbolic link; not read"]
    with pytest.raises(InvalidInput, match="no task was found"):
        read("harbor", tmp_path / "tasks/a/sum/tests")


def test_no_network(tmp_path: Path) -> None:
    add(tmp_path, **{"task.toml": TOML + "allow_internet = false\n"})
    assert "network" not in one(tmp_path)[0]["task"]
    add(tmp_path)
    assert "network" not in one(tmp_path, network="none")[0]["task"]


def test_the_manifest_is_small_json(tmp_path: Path) -> None:
    add(tmp_path)
    with read("harbor", tmp_path) as imported:
        assert str(tmp_path) not in json.dumps(imported.manifest)
