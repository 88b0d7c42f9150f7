"""How many characters of each file are shown: small ones whole, the rest alike, head and tail of each."""

from collections.abc import Sequence


def fair(sizes: Sequence[int], total: int) -> list[int]:
    """Share ``total`` between so much: nobody gets more than its size, and nobody less while another gets more."""
    shares = [0] * len(sizes)
    left = total
    waiting = sorted(range(len(sizes)), key=lambda i: sizes[i])
    for done, i in enumerate(waiting):
        shares[i] = min(sizes[i], left // (len(waiting) - done))
        left -= shares[i]
    return shares


def head_and_tail(text: str, most: int) -> tuple[str, int, str]:
    """Return the head, how many characters are left out after it, and the tail: two thirds and one third of ``most``."""
    if len(text) <= most:
        return text, 0, ""
    tail = most // 3
    return text[: most - tail], len(text) - most, text[len(text) - tail :] if tail else ""
