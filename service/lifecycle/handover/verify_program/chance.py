"""Numbers as numpy draws them, without numpy: PCG64 seeded as its default generator is, and draws of jobs with numpy."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from service.lifecycle.handover.verify_program.means import SKIPPED, numpy

U32, U64, U128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def hashed(value: int, state: list[int], times: int) -> int:
    value ^= state[0]
    state[0] = state[0] * times & U32
    value = value * state[0] & U32
    return value ^ value >> 16


def seeded(seed: int) -> list[int]:
    """Four words of 64 bits from a seed (M. E. O'Neill's seed sequence, as numpy has it)."""
    words = [seed >> 32 * k & U32 for k in range(max(1, -(-seed.bit_length() // 32)))]
    state = [0x43B0D7E5]
    pool = [hashed(words[k] if k < len(words) else 0, state, 0x931E8875) for k in range(4)]

    def mixed(into: int, word: int) -> None:
        both = (0xCA01F9DD * pool[into] - 0x4973F715 * hashed(word, state, 0x931E8875)) & U32
        pool[into] = both ^ both >> 16

    for source in range(4):
        for into in range(4):
            if source != into:
                mixed(into, pool[source])
    for word in words[4:]:
        for into in range(4):
            mixed(into, word)
    state = [0x8B51F9DD]
    halves = [hashed(pool[k % 4], state, 0x58F38DED) for k in range(8)]
    return [halves[2 * k] | halves[2 * k + 1] << 32 for k in range(4)]


class Chance:
    """M. E. O'Neill's PCG XSL RR 128/64."""

    def __init__(self, seed: int) -> None:
        first, second, third, fourth = seeded(seed)
        self.step = ((third << 64 | fourth) << 1 | 1) & U128
        self.state = ((first << 64 | second) + self.step) * 0x2360ED051FC65DA44385DF649FCCF645 + self.step & U128
        self.half: Any = None

    def word(self) -> int:
        self.state = self.state * 0x2360ED051FC65DA44385DF649FCCF645 + self.step & U128
        value, turn = (self.state >> 64 ^ self.state) & U64, self.state >> 122
        return (value >> turn | value << 64 - turn) & U64

    def short(self) -> int:
        """32 bits: the lower half of a word, then its upper one."""
        if self.half is None:
            word = self.word()
            self.half = word >> 32
            return word & U32
        value: int = self.half
        self.half = None
        return value

    def random(self) -> float:
        return (self.word() >> 11) * 2.0**-53

    def sign(self) -> float:
        return -1.0 if self.short() >> 31 else 1.0

    def permutation(self, n: int) -> list[int]:
        found = list(range(n))
        for last in range(n - 1, 0, -1):
            mask = (1 << last.bit_length()) - 1
            place = self.short() & mask
            while place > last:
                place = self.short() & mask
            found[last], found[place] = found[place], found[last]
        return found


@lru_cache(maxsize=2)
def times_drawn(n: int, draws: int, seed: int, groups: Any = None) -> Any:
    """How often each of n jobs was drawn in each draw, within groups where given. Needs numpy."""
    chance = numpy.random.default_rng(seed)
    names = ("all",) * n if groups is None else groups
    members = [[k for k in range(n) if names[k] == name] for name in sorted(set(names))]
    found = numpy.zeros((draws, n), dtype=numpy.uint16)
    for start in range(0, draws, 250):
        end = min(draws, start + 250)
        for mine in members:
            even = numpy.full(len(mine), 1 / len(mine))
            found[start:end, mine] = chance.multinomial(len(mine), even, size=end - start)
    return found


def divided(top: Any, bottom: Any) -> Any:
    return numpy.divide(top, bottom, out=numpy.full(numpy.shape(top), numpy.nan), where=bottom > 0)


def middle_95(drawn: Any) -> tuple[Any, Any]:
    """Percentiles 2.5 and 97.5 of what is known; nothing of fewer than two."""
    known = drawn[~numpy.isnan(drawn)]
    if len(known) < 2:
        return None, None
    low, high = numpy.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def ratio_ends(tops: Sequence[float], bottoms: Sequence[float], seed: int, draws: int, groups: Any = None) -> Any:
    """Interval of sum(top) / sum(bottom), jobs drawn."""
    if numpy is None or not tops:
        return (SKIPPED, SKIPPED) if tops else (None, None)
    times = times_drawn(len(tops), draws, seed, None if groups is None else tuple(groups)).astype(float)
    return middle_95(divided(times @ numpy.asarray(tops, float), times @ numpy.asarray(bottoms, float)))
