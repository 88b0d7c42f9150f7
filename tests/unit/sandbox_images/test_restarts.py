"""A browser that keeps ending is started again after pauses that grow, and five times a minute at most."""

from sandbox_images.desktop.deskd.restarts import FIRST_PAUSE_S, MOST_PAUSE_S, MOST_STARTS, WITHIN_S, Pace


def ending_at_once(pace: Pace, seconds: float) -> list[float]:
    """Return when a program that ends at once is started, for so long."""
    now, starts = 1000.0, list[float]()
    while now < 1000 + seconds:
        starts.append(now)
        pace.started(now)
        now += pace.pause(now)
    return starts


def test_no_minute_has_more_starts_than_there_may_be() -> None:
    starts = ending_at_once(Pace(), 600)
    for start in starts:
        assert sum(start <= other < start + WITHIN_S for other in starts) <= MOST_STARTS
    assert starts[-1] >= 1000 + 600 - WITHIN_S, "it is given up for a while, not for good"


def test_pauses_double() -> None:
    first, second, third, *_ = ending_at_once(Pace(), 10)
    assert (second - first, third - second) == (FIRST_PAUSE_S, 2 * FIRST_PAUSE_S)


def test_a_browser_that_ran_for_long_comes_back_at_once() -> None:
    pace = Pace()
    ending_at_once(pace, 5)
    pace.started(2000.0)
    assert not pace.exhausted(2000 + WITHIN_S)
    assert pace.pause(2000 + WITHIN_S) == FIRST_PAUSE_S


def test_no_pause_is_over_the_most() -> None:
    pace = Pace()
    for now in range(0, 1000, 50):
        pace.started(float(now))
        assert pace.pause(float(now)) <= MOST_PAUSE_S
