"""Programs and loader are changed in place: same length, nothing else touched."""

import struct
from pathlib import Path

import pytest

from sandbox_images.kits.base import relocate

_NAME = b"/lib64/ld-linux-x86-64.so.2\0"


def _program(name: bytes = _NAME, *, kind: int = 3) -> bytes:
    """A 64-bit ELF image with one program header, the loader's name behind it and foreign data at the end."""
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    entry = struct.pack("<IIQQQQQQ", kind, 4, 120, 120, 120, len(name), len(name), 1)
    return header + entry + name + b"payload"


def _loader() -> bytes:
    return b"head\0/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib/\0/usr/lib/\0x/etc/ld.so.cache\0tail"


def test_a_program_gets_the_loader_and_keeps_the_rest(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_bytes(_program())
    assert relocate.move(program)
    assert program.read_bytes() == _program(b"/opt/kit/lib/ld.so".ljust(len(_NAME), b"\0"))
    assert not relocate.move(program), "a second time there is nothing to do"


@pytest.mark.parametrize("body", [b"", b"#!/bin/sh\n", b"\x7fELF\x01", _program(kind=1), _program()[:70]])
def test_what_names_no_loader_is_left_alone(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(body)
    assert not relocate.move(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == body


def test_a_program_for_another_library_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ld.so").write_bytes(_loader())
    (tmp_path / "tool").write_bytes(_program(b"/lib/ld-musl-x86_64.so.1\0"))
    assert relocate.main(tmp_path) == 1


def test_the_loader_searches_the_kit_only() -> None:
    settled = relocate.settle(_loader())
    assert len(settled) == len(_loader())
    folders = [part for part in settled.split(b"\0") if part.startswith(b"/")]
    assert folders
    assert all(part.startswith(b"/opt/") for part in folders)
    assert b"/etc/ld.so.cache" not in settled


def test_a_loader_of_another_make_is_refused() -> None:
    with pytest.raises(relocate.NotMovable):
        relocate.settle(_loader().replace(b"/usr/lib/x86_64", b"/usr/lib/arm64"))
