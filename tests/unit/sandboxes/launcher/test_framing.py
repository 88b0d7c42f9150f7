"""Both halves of the protocol agree, and what comes in is bounded."""

import hashlib
import hmac
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.sandboxes.docker import framing, link_install
from service.sandboxes.docker.framing import HEADER, Inbox, Kind, Violation, encode


def load_wire() -> ModuleType:
    spec = importlib.util.spec_from_file_location("launcher_wire", link_install.SOURCE / "launcher_wire.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with patch.object(sys, "path", [str(link_install.SOURCE), *sys.path]):
        spec.loader.exec_module(module)
    return module


WIRE = load_wire()


def test_constants_agree() -> None:
    assert {kind.name: getattr(WIRE, kind.name) for kind in Kind} == {kind.name: int(kind) for kind in Kind}
    for name in ("VERSION", "MAX_MESSAGE", "FRAME", "TRANSFER"):
        assert getattr(WIRE, name) == getattr(framing, name)
    assert WIRE.HEADER.format == HEADER.format


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_fields_agree(fields: list[bytes]) -> None:
    assert WIRE.pack(*fields) == framing.pack(*fields)
    assert framing.unpack(framing.pack(*fields)) == WIRE.unpack(WIRE.pack(*fields)) == fields


@given(st.binary(max_size=100))
def test_nonsense_fields_are_refused_or_read(body: bytes) -> None:
    try:
        fields = framing.unpack(body)
    except Violation:
        return
    assert framing.pack(*fields) == body


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_proofs_agree_and_name_their_role(key: bytes, ours: bytes, theirs: bytes) -> None:
    proof = framing.prove(key, b"host", ours, theirs)
    assert proof == WIRE.prove(key, b"host", ours, theirs)
    assert proof == hmac.new(key, b"host" + ours + theirs, hashlib.sha256).digest()
    assert proof != framing.prove(key, b"launcher", ours, theirs)
    assert WIRE.same(proof, bytes(proof))
    assert not WIRE.same(proof, proof[:-1] + bytes([proof[-1] ^ 1]))
    assert not WIRE.same(proof, proof[:-1])


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=10), st.data())
def test_messages_survive_any_cut(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(encode(Kind.OUTPUT, flag=n % 2, number=n, body=body) for n, body in enumerate(bodies))
    inbox, got, at = Inbox(), list[bytes](), 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        inbox.feed(stream[at : at + size])
        got += [message.body for message in inbox.messages()]
        at += size
    assert got == bodies


@pytest.mark.parametrize("length", [65, 1 << 31, (1 << 32) - 1])
def test_an_oversized_header_is_refused_before_its_body(length: int) -> None:
    inbox = Inbox()
    inbox.feed(HEADER.pack(Kind.HELLO, 0, 1, length))
    with pytest.raises(Violation):
        list(inbox.messages())


@pytest.mark.parametrize("field", [b"-1", b"1e9", b"9" * 19, b" 1", b"\xd9\xa1"])
def test_odd_numbers_are_refused(field: bytes) -> None:
    with pytest.raises(Violation):
        framing.integer(field)


def test_the_launcher_folder_holds_what_is_installed(tmp_path: Path) -> None:
    link_install.install_launcher(tmp_path)
    link_install.install_launcher(tmp_path)
    names = {path.name for path in tmp_path.glob("*.py")}
    assert names == {path.name for path in link_install.SOURCE.glob("*.py")} - {"__init__.py"}
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in tmp_path.rglob("*.py*"))
    assert len(list((tmp_path / "__pycache__").iterdir())) == len(names) - 1
