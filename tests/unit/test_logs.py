"""Log lines of a process."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from service import logs


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    stream = io.StringIO()
    logs.configure("INFO", stream)
    yield stream
    structlog.reset_defaults()
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.mark.fault(98)
def test_line_ends_and_controls_stay_in_their_line(lines: io.StringIO) -> None:
    odd = "a\r\n\u2028{\x1b[2J\x00 ü"
    structlog.stdlib.get_logger("x").warning("thing_happened", text=odd, **{"a\nb": 1})
    logging.getLogger("library").warning("theirs: %s", odd)
    logging.getLogger("library").debug("not shown")
    written = lines.getvalue().split("\n")
    assert (len(written), written[-1]) == (3, "")
    ours, theirs = json.loads(written[0]), json.loads(written[1])
    assert (ours["event"], ours["text"], ours["level"], ours["a\nb"]) == ("thing_happened", odd, "warning", 1)
    assert ours["timestamp"].endswith("Z")
    assert theirs["event"] == f"theirs: {odd}"
    assert "\r" not in lines.getvalue()


@pytest.mark.fault(100)
def test_a_field_of_a_megabyte_is_cut_with_a_mark(lines: io.StringIO) -> None:
    structlog.stdlib.get_logger("x").info("e", text="x" * 1_000_000)
    line = lines.getvalue()
    assert len(line) < 5000
    assert json.loads(line)["text"].endswith("…[996000 more]")


def test_a_traceback_is_one_line(lines: io.StringIO) -> None:
    try:
        raise ValueError("a\nb")
    except ValueError as error:
        structlog.stdlib.get_logger("x").error("broke", exc_info=error)
    assert lines.getvalue().count("\n") == 1
    assert "ValueError: a" in json.loads(lines.getvalue())["exception"]
