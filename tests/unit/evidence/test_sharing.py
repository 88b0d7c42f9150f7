"""Fair shares: never more than there is, small ones whole, and cut twice as cut once."""

from hypothesis import given
from hypothesis import strategies as st

from service.evidence.extraction.inside.sharing import Piece, level, share

SIZES = st.lists(st.integers(0, 500), max_size=20)


def pieces(sizes: list[int]) -> list[Piece]:
    return [Piece("text", "", "".join(chr(0x100 + i) for i in range(size))) for size in sizes]


@given(SIZES, st.integers(0, 3000))
def test_the_level_is_the_largest_that_fits(sizes: list[int], most: int) -> None:
    found = level(sizes, most)
    assert sum(min(s, found) for s in sizes) <= most or found == 0
    if sum(sizes) > most:
        assert sum(min(s, found + 1) for s in sizes) > most


@given(SIZES, st.integers(0, 3000))
def test_nothing_is_lost_uncounted(sizes: list[int], most: int) -> None:
    some = pieces(sizes)
    share(some, most)
    assert sum(p.kept for p in some) <= most
    for piece, size in zip(some, sizes, strict=True):
        assert piece.kept + piece.missing == size
        whole = "".join(chr(0x100 + i) for i in range(size))
        assert whole.startswith(piece.head)
        assert whole.endswith(piece.tail)


@given(SIZES, st.integers(0, 3000), st.integers(0, 3000))
def test_cut_twice_is_cut_once_to_a_letter(sizes: list[int], first: int, second: int) -> None:
    once, twice = pieces(sizes), pieces(sizes)
    share(once, min(first, second))
    share(twice, max(first, second))
    share(twice, min(first, second))
    for one, other in zip(once, twice, strict=True):
        assert abs(len(one.head) - len(other.head)) <= 1
        assert abs(len(one.tail) - len(other.tail)) <= 1


def test_a_text_that_is_cut_keeps_head_and_tail() -> None:
    piece = Piece("text", "", "a" * 600 + "z" * 300).cut(90)
    assert (piece.head, piece.tail, piece.missing) == ("a" * 60, "z" * 30, 810)
