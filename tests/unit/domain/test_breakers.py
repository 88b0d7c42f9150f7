"""When a breaker opens, when it is probed, and how many requests a provider gets at once."""

from service.domain.breakers import RESTART, AdaptiveLimit, BreakerRules, Outcome, Window

RULES = BreakerRules(window_s=60, min_failures=5, rate=0.5, first_probe_s=10, last_probe_s=120)


def test_it_opens_on_a_rate_of_failures_not_on_a_number() -> None:
    calm = Window(RULES)
    for second in range(10):
        calm.add(second, Outcome.ANSWERED)
    assert [calm.add(10 + i, Outcome.FAILED) for i in range(9)] == [False] * 9
    assert calm.add(19, Outcome.FAILED)


def test_few_failures_do_not_open_it() -> None:
    window = Window(RULES)
    assert [window.add(i, Outcome.FAILED) for i in range(5)] == [False, False, False, False, True]


def test_what_is_long_ago_does_not_count() -> None:
    window = Window(RULES)
    for second in range(4):
        window.add(second, Outcome.LIMITED)
    assert not window.add(64, Outcome.FAILED)
    assert not window.add(65, Outcome.FAILED)


def test_probes_come_less_often_while_they_fail() -> None:
    assert [RULES.pause_s(n) for n in (1, 2, 3, 4, 5, 6, 1000)] == [10, 20, 40, 80, 120, 120, 120]


def test_the_limit_halves_once_per_burst_and_grows_by_rounds() -> None:
    limit = AdaptiveLimit(10_000)
    assert limit.present == 10_000
    for _ in range(200):
        limit.limited(100.0, 200)
    assert limit.present == 100
    limit.limited(103.0, 100)
    assert limit.present == 50
    for _ in range(50):
        limit.answered(50)
    assert limit.present == 50
    limit.answered(50)
    assert limit.present == 51


def test_an_idle_limit_does_not_grow() -> None:
    limit = AdaptiveLimit(10_000)
    limit.limited(0.0, 40)
    for _ in range(500):
        limit.answered(3)
    assert limit.present == 20


def test_after_an_outage_it_doubles_up_to_where_it_was() -> None:
    limit = AdaptiveLimit(64)
    limit.restart()
    assert limit.present == RESTART == 8
    for _ in range(8):
        limit.answered(8)
    assert limit.present == 16
    for _ in range(1000):
        limit.answered(64)
    assert limit.present == 64


def test_the_last_one_stays() -> None:
    limit = AdaptiveLimit(4)
    for i in range(20):
        limit.limited(i * 10.0, 1)
    assert limit.present == 1
