"""Samples: as many of each stratum as there can be, the same for the same seed."""

from random import Random

from service.domain.strata import spread

ITEMS = [f"{stratum}{i}" for stratum, n in (("a", 50), ("b", 5), ("c", 2)) for i in range(n)]


def drawn(items: list[str], n: int, seed: int) -> list[str]:
    return spread(items, n, seed, key=str, stratum=lambda item: item[0])


def test_every_stratum_gives_as_many_while_it_can() -> None:
    counts = {s: sum(i[0] == s for i in drawn(ITEMS, 12, 1)) for s in "abc"}
    assert counts == {"a": 5, "b": 5, "c": 2}


def test_the_seed_decides_and_the_order_of_items_does_not() -> None:
    shuffled = [*ITEMS]
    Random(4).shuffle(shuffled)
    assert drawn(ITEMS, 9, 1) == drawn(shuffled, 9, 1)
    assert {tuple(drawn(ITEMS, 9, seed)) for seed in range(8)} != {tuple(drawn(ITEMS, 9, 0))}


def test_more_than_there_is_is_everything_once() -> None:
    assert sorted(drawn(ITEMS, 1000, 3)) == sorted(ITEMS)
