"""The name in a ClientHello, as OpenSSL writes it and as liars do."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.gateway.egress.client_hello import NotTls, server_name


def hello(name: str | None) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read()


def test_the_name_is_read() -> None:
    assert server_name(hello("example.com")) == "example.com"
    assert server_name(hello(None)) == ""


def test_any_beginning_of_it_waits_for_the_rest() -> None:
    whole = hello("example.com")
    assert all(server_name(whole[:cut]) is None for cut in range(len(whole)))
    assert server_name(whole + b"more") == "example.com"


def test_it_may_come_in_several_records() -> None:
    whole = hello("example.com")
    body = whole[5:]
    pieces = [body[i : i + 50] for i in range(0, len(body), 50)]
    split = b"".join(whole[:3] + len(p).to_bytes(2, "big") + p for p in pieces)
    assert server_name(split) == "example.com"


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"\x16\x02\x00\x00\x05aaaaa", b"\x16\x03\x01\x00\x00", b"\x16\x03\x01\x00\x05\x02\0\0\1x"],
)  # fmt: skip
def test_what_is_no_hello_is_refused(data: bytes) -> None:
    with pytest.raises(NotTls):
        server_name(data)


def test_an_endless_one_is_refused() -> None:
    endless = b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" + bytes(20_000)
    with pytest.raises(NotTls):
        server_name(endless)


def test_two_names_are_refused() -> None:
    whole = hello("example.com")
    name = b"\x00\x00\x0bexample.com"
    at = whole.index(name)
    doubled = bytearray(whole)
    doubled[at:at] = b"\x00\x00\x08evil.com"
    # Lengths of everything that contains the list of names, outside in.
    for offset in (3, 6):
        width = 2 if offset == 3 else 3
        value = int.from_bytes(doubled[offset : offset + width], "big") + 11
        doubled[offset : offset + width] = value.to_bytes(width, "big")
    ext = at - 2 - 4
    for offset in (ext + 2, ext + 4):
        value = int.from_bytes(doubled[offset : offset + 2], "big") + 11
        doubled[offset : offset + 2] = value.to_bytes(2, "big")
    session = 9 + 2 + 32
    ciphers = session + 1 + doubled[session]
    compression = ciphers + 2 + int.from_bytes(doubled[ciphers : ciphers + 2], "big")
    extensions = compression + 1 + doubled[compression]
    value = int.from_bytes(doubled[extensions : extensions + 2], "big") + 11
    doubled[extensions : extensions + 2] = value.to_bytes(2, "big")
    with pytest.raises(NotTls):
        server_name(bytes(doubled))


@given(st.binary(max_size=400))
def test_noise_is_no_crash(data: bytes) -> None:
    try:
        server_name(b"\x16\x03\x01" + data)
    except NotTls:
        return
