"""Which URLs of users this service may call: none that leads back inside (fault 108)."""

import pytest

from service.domain.errors import Invalid
from service.domain.public_urls import is_global, parse_public_url
from service.domain.webhooks import FIRST_PAUSE_S, LAST_PAUSE_S, pause_s

PRIVATE = [
    "https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0177.0.0.1/", "https://0x7f.0.0.1/",
    "https://0x7f000001/", "https://0/", "https://0.0.0.0/", "https://10.0.0.1/", "https://172.16.0.1/",
    "https://192.168.1.1/", "https://169.254.169.254/latest", "https://100.64.0.1/", "https://192.88.99.1/",
    "https://224.0.0.1/", "https://240.0.0.1/", "https://255.255.255.255/", "https://[::]/", "https://[::1]/",
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:8.8.8.8]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/", "https://[fe80::1]/", "https://[fc00::1]/", "https://[2001:db8::1]/",
    "https://localhost/", "https://localhost./", "https://LOCALHOST/", "https://a.localhost/", "https://db/",
    "https://metadata.google.internal/", "https://printer.local/",
]  # fmt: skip
MALFORMED = [
    "", "https://", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "https://user@example.com/",
    "https://user:pw@example.com/", "https://example.com@127.0.0.1/", "https://example.com/#part", "https://[fe80::1%25eth0]/",
    "https://[::1/", "https://exa mple.com/", "https://example.com\\@127.0.0.1/", "https://example.com/\\..", "https://example.com:/",
    "https://example.com:0/", "https://example.com:65536/", "https://example..com/", "https://-a.example.com/",
    "https://exämple.com/", "https://example.com/ü", "https://example.com/\r\nHost: x", "https://example.com/a b",
    "https://" + "a" * 64 + ".com/", "https://example.com/" + "a" * 2000,
]  # fmt: skip


@pytest.mark.fault(108)
@pytest.mark.parametrize("url", PRIVATE)
def test_no_private_address_by_any_spelling(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_public_url(url)
    assert caught.value.type == "bad_url"


@pytest.mark.fault(108)
@pytest.mark.parametrize("url", MALFORMED, ids=repr)
@pytest.mark.parametrize("allow_private", [False, True])
def test_what_parsers_could_read_in_two_ways_is_refused(url: str, allow_private: bool) -> None:
    with pytest.raises(Invalid):
        parse_public_url(url, allow_private=allow_private)


@pytest.mark.fault(108)
def test_http_and_private_hosts_only_where_tests_allow_them() -> None:
    with pytest.raises(Invalid):
        parse_public_url("http://hooks.example.com/")
    found = parse_public_url("http://127.0.0.1:8080/a?b", allow_private=True)
    assert (found.scheme, found.address, found.port, found.target) == ("http", "127.0.0.1", 8080, "/a?b")


def test_public_urls_are_taken_apart() -> None:
    found = parse_public_url("https://Hooks.Example.com.:8443/a/b?c=d")
    assert (found.host, found.port, found.target, found.address) == ("hooks.example.com", 8443, "/a/b?c=d", None)
    assert found.authority == "hooks.example.com:8443"
    assert found.at("2606:4700::1111") == "https://[2606:4700::1111]:8443/a/b?c=d"
    plain = parse_public_url("https://1.2.3.4.example.com")
    assert (plain.authority, plain.target, plain.port) == ("1.2.3.4.example.com", "/", 443)
    assert parse_public_url("https://[2606:4700::1111]/").authority == "[2606:4700::1111]"
    assert parse_public_url("https://8.8.8.8/").address == "8.8.8.8"


@pytest.mark.fault(108)
def test_addresses_that_names_resolve_to() -> None:
    good = ("8.8.8.8", "1.1.1.1", "2606:4700::1111", "2001:4860:4860::8888")
    bad = (
        "127.0.0.1", "10.1.2.3", "169.254.1.1", "::1", "::ffff:1.1.1.1", "fe80::1%eth0", "64:ff9b::101:101", "2002:101:101::",
        "2001::1", "192.0.0.8", "100.127.255.255", "3fff::1", "ff02::1", "198.18.0.1", "203.0.113.1", "not an address",
    )  # fmt: skip
    assert [a for a in good if not is_global(a)] == []
    assert [a for a in bad if is_global(a)] == []


def test_pauses_grow_and_stay_within_their_bounds() -> None:
    pauses = [[pause_s(n) for _ in range(50)] for n in range(1, 15)]
    assert all(FIRST_PAUSE_S <= p <= LAST_PAUSE_S for row in pauses for p in row)
    assert pauses[0] == [FIRST_PAUSE_S] * 50
    assert [max(row) for row in pauses[:6]] == sorted(max(row) for row in pauses[:6])
    assert min(pauses[13]) >= LAST_PAUSE_S * 0.75
    assert len(set(pauses[5])) > 1
