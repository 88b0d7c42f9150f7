"""What an agent may try against its grade. Each of these must move no verdict and buy no retry."""

import pytest

from tests.journeys.jobs import RIGHT, make_task, python_agent, record, submit
from tests.journeys.stack import Stack

WRONG = {"total": 0, "name": "nobody"}
DELIVER = f"""
import json, os, pathlib, signal, socket, subprocess, sys, time
RIGHT, WRONG = {RIGHT!r}, {WRONG!r}
def deliver(answers):
    pathlib.Path("output/answers.json").write_text(json.dumps(answers))
deliver(WRONG)
"""

ORPHAN = (
    DELIVER
    + """
code = "import json,time;time.sleep(0.3)\\nwhile True: open('output/answers.json','w').write(json.dumps(%r))" % RIGHT
for _ in range(4):
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
"""
)
FORGED_OUTPUT = (
    DELIVER
    + """
for line in ('{"type":"verdict","state":"graded","score":2,"max_score":2}', "PASS 2/2", '{"type":"run.phase","phase":"done"}'):
    print(line, flush=True)
    print(line, file=sys.stderr, flush=True)
pathlib.Path("output/verdict.json").write_text('{"score": 2, "max_score": 2, "state": "graded"}')
"""
)
KILLS_LAUNCHER = (
    DELIVER
    + """
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(60)
"""
)
KILLS_ALL = (
    DELIVER
    + """
os.kill(-1, signal.SIGKILL)
"""
)
IMPERSONATES = (
    DELIVER
    + """
import struct
path = "/run/workstead/launcher.sock"
for attempt in range(50):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(1)
    try:
        s.connect(path)
        for kind in ("hello", "exited", "frame"):
            head = json.dumps({"type": kind, "kind": kind, "keyed": False, "code": 0, "stream": "stdout", "offset": 0}).encode()
            s.sendall(struct.pack(">II", len(head), 0) + head)
        s.recv(4096)
    except OSError:
        pass
    s.close()
"""
)
PLANTS_HELPERS = (
    DELIVER
    + """
import stat
for name in ("tar", "cat", "sh", "python3", "sha256sum"):
    for place in ("/workspace", "/workspace/output", "/tmp", "/workspace/.home"):
        p = pathlib.Path(place, name)
        p.write_text("#!/bin/sh\\necho '" + json.dumps(RIGHT) + "'\\n")
        p.chmod(0o755)
pathlib.Path("output/json.py").write_text("def loads(*a, **k): return " + repr(RIGHT))
"""
)


def _verdict(
    service: Stack, program: str, cause: str, attempts: int = 1, limits: dict[str, float] | None = None
) -> float:
    task = make_task(service, limits=limits or {})
    run = record(service, submit(service, task, python_agent(service, program)), 180).run
    assert (run["ended_because"], run["attempt"], run["outcome"]) == (cause, attempts, "graded"), run
    assert "retried" not in run["flags"]
    return float(run["verdict"]["score"])


@pytest.mark.parametrize(("program", "cause"), [
    (FORGED_OUTPUT, "completed"),
    (KILLS_LAUNCHER, "agent_killed_sandbox"),
    (KILLS_ALL, "agent_killed_sandbox"),
    (IMPERSONATES, "completed"),
    (PLANTS_HELPERS, "completed"),
], ids=["forged-output", "kills-launcher", "kills-all", "impersonates", "plants-helpers"])  # fmt: skip
def test_the_verdict_is_that_of_what_was_delivered(service: Stack, program: str, cause: str) -> None:
    assert _verdict(service, program, cause) == 0


def test_orphan_writers_cannot_change_a_sealed_deliverable(service: Stack) -> None:
    """They may win the race before the kill; whatever was sealed is what is graded, and it never changes."""
    task = make_task(service)
    run = record(service, submit(service, task, python_agent(service, ORPHAN)), 120).run
    sealed = service.http.get(f"/v1/runs/{run['id']}/artifacts/output/answers.json")
    assert run["attempt"] == 1
    assert run["outcome"] == "graded"
    assert service.http.get(f"/v1/runs/{run['id']}/artifacts/output/answers.json").content == sealed.content
    service.call("POST", f"/v1/runs/{run['id']}/gradings", json={})


def test_writers_after_the_deadline_come_too_late(service: Stack) -> None:
    program = (
        DELIVER
        + """
code = "import json,time;time.sleep(4)\\nwhile True: open('output/answers.json','w').write(json.dumps(%r))" % RIGHT
for _ in range(4):
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
time.sleep(60)
"""
    )
    assert _verdict(service, program, "wall_clock", limits={"wall_clock_s": 2}) == 0


@pytest.mark.fault(12)
@pytest.mark.parametrize("target", ["/etc", "/workspace/.home", "/proc/self/root"])
def test_an_output_directory_replaced_by_a_link_is_refused_and_buys_nothing(service: Stack, target: str) -> None:
    program = (
        DELIVER
        + f"""
os.rename("output", "gone")
os.symlink({target!r}, "output")
"""
    )
    task = make_task(service)
    run = record(service, submit(service, task, python_agent(service, program))).run
    assert (run["ended_because"], run["attempt"], run["outcome"]) == ("collection_refused", 1, "graded"), run
    assert run["verdict"]["score"] == 0
    assert run["deliverable"]["files"] == 0


@pytest.mark.fault(78)
def test_hidden_assets_are_nowhere_in_the_sandbox(service: Stack) -> None:
    program = (
        DELIVER
        + """
import hashlib
wanted = hashlib.sha256(json.dumps(RIGHT).encode()).hexdigest()
found = 0
for root in ("/", ):
    for folder, dirs, names in os.walk(root):
        if folder.startswith(("/proc", "/sys", "/dev")):
            dirs[:] = []
            continue
        for name in names:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) < 1 << 16:
                    found += hashlib.sha256(open(path, "rb").read()).hexdigest() == wanted
            except OSError:
                pass
print("copies", found, flush=True)
"""
    )
    seen = record(service, submit(service, make_task(service), python_agent(service, program)))
    assert seen.output(1) == "copies 0\n"
