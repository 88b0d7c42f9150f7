"""Kill any process of the service at a named step of a run, and see that nothing is lost, doubled or left.

``python -m tests.journeys.chaos [rounds] [seed]`` runs every victim at every step, ``rounds`` times, in random order.
"""

import itertools
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from service.lifecycle.crash_points import NAMES
from tests.journeys.jobs import RIGHT, make_task, python_agent, record, submit
from tests.journeys.stack import Stack, wait_until

VICTIMS = ("worker", "api", "grader", "postgres", "supervisor")
LINES = 120
PROGRAM = f"""
import json, time
for i in range({LINES}):
    print(f"line {{i}}", flush=True)
    time.sleep(0.005)
with open("output/answers.json", "w") as out:
    json.dump({RIGHT!r}, out)
"""


@dataclass(frozen=True)
class Kill:
    step: str
    victim: str


def plan(rounds: int, seed: int) -> list[Kill]:
    """Every victim at every step, ``rounds`` times, shuffled."""
    kills = [Kill(s, v) for s, v in itertools.product(NAMES, VICTIMS)] * rounds
    random.Random(seed).shuffle(kills)
    return kills


def sample(count: int, seed: int) -> list[Kill]:
    """``count`` kills that pass through every step, with random victims."""
    rng = random.Random(seed)
    steps = [*NAMES] * (count // len(NAMES) + 1)
    return [Kill(step, rng.choice(VICTIMS)) for step in steps[:count]]


class Chaos:
    """One service that is hurt again and again, one run per kill."""

    def __init__(self) -> None:
        self.stack = Stack({"WORKSTEAD_CRASH_TESTS": "true"})
        self._armed = self.stack.data_dir / "crash-point"

    def start(self) -> None:
        self.stack.start()
        self.task = make_task(self.stack)
        self.agent = python_agent(self.stack, PROGRAM)

    def once(self, kill: Kill) -> float:
        """Submit a run, kill ``victim`` when the run is at ``step``, check the run. Returns seconds taken."""
        started = time.monotonic()
        self._disarm()
        self._armed.write_text(f"{kill.step}:wait")
        run_id = (
            submit(self.stack, self.task, self.agent) if kill.step != "submit.committed" else self._racing_submit(kill)
        )
        if kill.step != "submit.committed":
            self._kill_at(kill)
        self._check(run_id)
        return time.monotonic() - started

    def _kill_at(self, kill: Kill) -> None:
        reached, go = (self.stack.data_dir / f"{mark}-{kill.step}" for mark in ("reached", "go"))
        wait_until(f"{kill.step} is reached", reached.exists, 60, 0.005)
        self._armed.unlink(missing_ok=True)
        self.stack.kill(kill.victim)
        go.touch()

    def _racing_submit(self, kill: Kill) -> str:
        """The API stands still inside the request: submit from a thread, kill, and repeat with the same key."""
        import threading

        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(submit(self.stack, self.task, self.agent)))
        thread.start()
        self._kill_at(kill)
        thread.join(90)
        assert found, "the submission never came through"
        return found[0]

    def _disarm(self) -> None:
        self._armed.unlink(missing_ok=True)
        for mark in itertools.chain(*(self.stack.data_dir.glob(f"{m}-*.*") for m in ("reached", "go"))):
            Path(mark).unlink()

    def _check(self, run_id: str) -> None:
        seen = record(self.stack, run_id, 180)
        run = seen.run
        assert run["outcome"] == "graded", run
        assert run["verdict"]["score"] == run["verdict"]["max_score"] == 2, run
        assert run["ended_because"] == "completed", run
        assert seen.output(run["attempt"]) == "".join(f"line {i}\n" for i in range(LINES))
        assert len(seen.of("deliverable.sealed")) == 1, seen.of("deliverable.sealed")
        assert len(seen.of("verdict")) == 1, seen.of("verdict")
        assert len(seen.of("deliverable.checked")) == 1, seen.of("deliverable.checked")
        paths = [a["path"] for a in self.stack.call("GET", f"/v1/runs/{run_id}/artifacts")["data"]]
        assert paths.count("output/answers.json") == 1, paths

    def finish(self) -> None:
        """Have one more run graded, stop the service: nothing may be left.

        The run shows that the last victim's successor works. A worker sweeps up after its predecessor before it claims;
        one that is told to end while it still starts leaves that to the next.
        """
        self._disarm()
        self._check(submit(self.stack, self.task, self.agent))
        self.stack.stop()
        assert not self.stack.leftovers().all(), self.stack.leftovers().all()


def main(rounds: int = 3, seed: int | None = None) -> None:
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}", flush=True)
    chaos = Chaos()
    try:
        chaos.start()
        for number, kill in enumerate(plan(rounds, seed), 1):
            print(f"{number}: {kill.victim} at {kill.step}: {chaos.once(kill):.1f} s", flush=True)
        chaos.finish()
        print("0 runs lost, 0 events doubled or missing, nothing left", flush=True)
    finally:
        chaos.stack.close()


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:3]))
