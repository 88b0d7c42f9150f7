"""Lines of which the first and the last are kept, however many come."""

from collections import deque

HEAD = 2 / 3


class Rows:
    """Takes lines one by one; holds a bounded number of characters."""

    def __init__(self, most: int) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._head_left = round(most * HEAD)
        self._tail_most = most - self._head_left
        self._tail_chars = 0
        self.left_rows = self.left_chars = 0
        """What is in neither."""

    def add(self, line: str) -> None:
        cost = len(line) + 1
        if not self._tail and cost <= self._head_left:
            self._head.append(line)
            self._head_left -= cost
            return
        self._tail.append(line[: self._tail_most])
        self._tail_chars += min(cost, self._tail_most)
        self.left_chars += max(0, len(line) - self._tail_most)
        while self._tail_chars > self._tail_most:
            gone = self._tail.popleft()
            self._tail_chars -= len(gone) + 1
            self.left_rows += 1
            self.left_chars += len(gone) + 1

    @property
    def text(self) -> str:
        gap = [f"[… {self.left_rows} rows left out …]"] if self.left_rows else []
        return "\n".join([*self._head, *gap, *self._tail])
