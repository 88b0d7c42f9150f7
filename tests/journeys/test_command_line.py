"""The command line against a running service: runs, exit codes, events, artifacts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.stack import Stack
from workstead.errors import Forbidden, Unauthenticated
from workstead.sync import Client

WORKSTEAD = Path(sys.executable).with_name("workstead")
ANSWER = 'mkdir -p "$1" && printf \'{"n": 7}\' > "$1/answers.json" && printf "\\033[2J[red]seven[/red]\\n"'
GRADER = """
[[graders]]
method = "exact"
[graders.settings]
expected = { hidden = "answers.json" }
answers = [{ id = "n", type = "int" }]
"""


@pytest.fixture(scope="module")
def stack(service: Stack) -> Stack:
    return service


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two tasks, of which one has no grader, and a scaffold."""
    for name, grader in (("graded", GRADER), ("ungraded", "")):
        (tmp_path / name / "hidden").mkdir(parents=True)
        (tmp_path / name / "task.toml").write_text(f'name = "cli/{name}"\n{grader}\n[limits]\nwall_clock_s = 60\n')
        (tmp_path / name / "instruction.md").write_text("Which number is it?\n")
        (tmp_path / name / "hidden/answers.json").write_text('{"n": 7}')
    scaffold = {"name": "cli-shell", "version": "1", "argv": ["bash", "-c", ANSWER, "bash", "{output_dir}"]}
    (tmp_path / "shell.json").write_text(json.dumps(scaffold))
    return tmp_path


def environment(stack: Stack) -> dict[str, str]:
    return {**os.environ, "WORKSTEAD_URL": stack.url, "WORKSTEAD_TOKEN": stack.token, "COLUMNS": "200"}


def workstead(stack: Stack, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WORKSTEAD, *arguments],
        env=environment(stack),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_run_grades_and_downloads(stack: Stack, folder: Path) -> None:
    out = folder / "out"
    done = workstead(stack, "run", folder / "graded", "--scaffold", folder / "shell.json", "-k", "2", "-o", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2/2" in done.stdout
    assert "\x1b[2J" not in done.stdout
    assert "[red]seven[/red]" in done.stdout
    assert [json.loads(p.read_text()) for p in out.glob("*/output/answers.json")] == [{"n": 7}] * 2


def test_what_has_no_score_gives_exit_code_3(stack: Stack, folder: Path) -> None:
    done = workstead(stack, "run", folder / "ungraded", "--scaffold", folder / "shell.json", "-o", folder / "out")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "1 ungraded" in done.stdout


def test_mistakes_are_named_and_give_exit_code_1(stack: Stack, folder: Path) -> None:
    (folder / "graded/visible").symlink_to("/etc")
    done = workstead(stack, "run", folder / "graded", "-a", "nobody")
    assert done.returncode == 1
    assert "visible: is not a directory" in done.stderr
    done = workstead(stack, "run", folder / "ungraded", "-a", "nobody")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_one_run_can_be_looked_at(stack: Stack, folder: Path) -> None:
    with Client(stack.url, stack.token) as client:
        scaffold = client.scaffolds.register(folder / "shell.json")
        agent = client.agents.create(scaffold.ref)
        run = client.runs.create(client.tasks.create(folder / "graded").id, agent.id, labels={"of": "this test"})
        live = [e.seq for e in client.runs.events(run.id)]
        assert live == list(range(1, len(live) + 1))
        assert client.runs.wait(run.id).verdict.passed is True
        assert [g.state for g in client.runs.regrade(run.id)]
        assert next(iter(client.runs.list({"label.of": "this test"}))).id == run.id
    listed = workstead(stack, "runs", "list", "--json").stdout.splitlines()
    assert run.id in {json.loads(line)["id"] for line in listed}
    assert "output/answers.json" in workstead(stack, "runs", "show", run.id).stdout
    followed = workstead(stack, "runs", "events", run.id, "--follow").stdout
    assert "seven" in followed
    assert "verdict" in followed
    target = folder / "got.json"
    assert workstead(stack, "artifacts", "get", run.id, "output/answers.json", "-o", target).returncode == 0
    assert json.loads(target.read_text()) == {"n": 7}
    assert workstead(stack, "artifacts", "get", run.id, "output/answers.json", "-o", target).returncode == 1
    everything = folder / "everything"
    assert workstead(stack, "artifacts", "get", run.id, "--all", "-o", everything).returncode == 0
    assert json.loads((everything / "output/answers.json").read_text()) == {"n": 7}
    assert "[red]seven[/red]" in workstead(stack, "runs", "logs", run.id).stdout
    again = workstead(stack, "grade", run.id)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "1/1" in again.stdout
    deleted = workstead(stack, "runs", "delete", run.id)
    assert deleted.returncode == 0
    assert workstead(stack, "runs", "show", run.id).returncode == 1


def test_interrupted_watching_leaves_the_run_which_is_then_stopped(stack: Stack, folder: Path) -> None:
    slow = {"name": "cli-slow", "version": "1", "argv": ["bash", "-c", "echo at work; sleep 50"]}
    (folder / "slow.json").write_text(json.dumps(slow))
    label = "batch=interrupted"
    arguments = ["run", folder / "graded", "--scaffold", folder / "slow.json", "--label", label]
    watching = subprocess.Popen(
        [WORKSTEAD, *arguments], env=environment(stack), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watching.stdout is not None
    assert any("at work" in line for line in watching.stdout)
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=20)
    assert watching.returncode == 130
    assert f"`workstead runs stop --label {label}` stops them" in said
    run = json.loads(workstead(stack, "runs", "list", "--label", label, "--json").stdout)
    assert run["phase"] == "running"
    live = workstead(stack, "runs", "logs", run["id"])
    assert live.stdout == "at work\n"
    assert workstead(stack, "runs", "stop", "--label", label).returncode == 1  # nobody said yes
    assert workstead(stack, "runs", "stop", "--label", label, "--yes", "--mode", "discard").returncode == 0
    followed = workstead(stack, "runs", "watch", "--label", label)
    assert followed.returncode == 3, followed.stdout + followed.stderr
    assert "cancelled" in followed.stdout


def test_progress_survives_the_death_of_the_api(stack: Stack, folder: Path) -> None:
    program = f"echo at work; sleep 4; {ANSWER}"
    slow = {"name": "cli-patient", "version": "1", "argv": ["bash", "-c", program, "bash", "{output_dir}"]}
    (folder / "patient.json").write_text(json.dumps(slow))
    arguments = ["run", folder / "graded", "--scaffold", folder / "patient.json", "-k", "2", "-o", folder / "out"]
    watching = subprocess.Popen(
        [WORKSTEAD, *arguments], env=environment(stack), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watching.stdout is not None
    assert any("at work" in line for line in watching.stdout)
    stack.kill("api")
    rest, said = watching.communicate(timeout=90)
    assert watching.returncode == 0, rest + said
    assert "2/2" in rest
    assert len(list(folder.glob("out/*/output/answers.json"))) == 2


def test_doctor_of_a_running_service(stack: Stack) -> None:
    done = workstead(stack, "doctor", "--json", "--data-dir", stack.data_dir)
    rows = {row["what"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("service", "database", "clock", "runtime runc"):
        assert rows[what]["state"] == "ok", rows[what]
    assert "at this version's revision" in rows["database"]["said"]


def test_a_token_made_through_the_api_is_listed_and_revoked(stack: Stack) -> None:
    made = workstead(stack, "token", "create", "--scope", "runs:read", "--note", "short", "--expires-in", "15m")
    assert made.returncode == 0, made.stderr
    with Client(stack.url, made.stdout.strip()) as client:
        me = client.me()
        assert (me.scopes, me.note, me.expires_at is None) == (["runs:read"], "short", False)
        assert workstead(stack, "token", "revoke", str(me.token_id)).returncode == 0
        with pytest.raises(Unauthenticated):
            client.me()
    assert "admin" in workstead(stack, "whoami").stdout


def test_hosts_and_projects_are_an_operators(stack: Stack) -> None:
    host = json.loads(workstead(stack, "hosts", "list", "--json").stdout)
    assert host["slots"] >= 1
    assert "cordoned" in workstead(stack, "hosts", "cordon", host["id"]).stdout
    assert "cordoned" not in workstead(stack, "hosts", "uncordon", host["id"]).stdout
    assert workstead(stack, "project", "create", "lab", "--max-runs", "3").returncode == 0
    assert "no limit" in workstead(stack, "project", "set", "lab", "--max-runs", "none").stdout
    assert "lab" in workstead(stack, "project", "list").stdout


def test_a_token_made_on_the_server_opens_its_scope_only(stack: Stack) -> None:
    command = [WORKSTEAD, "token", "create", "--local", "--scope", "runs:read", "--note", "journey"]
    env = {**os.environ, "WORKSTEAD_DATA_DIR": str(stack.data_dir)}
    made = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    with Client(stack.url, made.stdout.strip()) as client:
        me = client.me()
        assert (me.scopes, me.note) == (["runs:read"], "journey")
        assert len(list(client.runs.list(limit=1))) <= 1
        with pytest.raises(Forbidden):
            client.agents.create("any@1")
