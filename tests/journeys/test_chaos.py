"""Any process of the service may die at any step of a run."""

import os
import random
from collections.abc import Iterator

import pytest

from tests.journeys.chaos import Chaos, Kill, plan, sample

SEED = int(os.environ.get("CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)


@pytest.fixture(scope="module")
def chaos() -> Iterator[Chaos]:
    print(f"CHAOS_SEED={SEED}")
    hurt = Chaos()
    try:
        hurt.start()
        yield hurt
        hurt.finish()
    finally:
        hurt.stack.close()


@pytest.mark.fault(111)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kill", sample(13, SEED), ids=lambda k: f"{k.victim}-at-{k.step}")
def test_a_killed_process_loses_nothing(chaos: Chaos, kill: Kill) -> None:
    chaos.once(kill)


@pytest.mark.slow
@pytest.mark.fault(111)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kill", plan(1, SEED)[:50], ids=lambda k: f"{k.victim}-at-{k.step}")
def test_fifty_more(chaos: Chaos, kill: Kill) -> None:
    chaos.once(kill)
