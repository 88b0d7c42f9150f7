"""Names are judged before anybody resolves them (faults 48, 54, 55)."""

import pytest

from service.domain.egress import HostRefused, Target, check, matches, normal_host, parse_authority
from service.domain.policies import NetworkRules
from service.domain.tasks import NetworkPolicy

WEB = NetworkRules(policy=NetworkPolicy.WEB, deny_hosts=["answers.example.org", "*.mirror.example"])
LISTED = NetworkRules(policy=NetworkPolicy.ALLOWLIST, allow_hosts=["example.com", "*.data.example.org"])


@pytest.mark.fault(48)
@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254:80", "[fd00::1]:443", "[::ffff:10.0.0.1]:443", "0x7f.1:80", "2130706433:80", "127.1:80",
        "0177.0.0.1:443", "1.2.3.4.:443", "::1:443",
    ],
)  # fmt: skip
def test_addresses_in_any_notation_are_no_names(text: str) -> None:
    with pytest.raises(HostRefused, match="address_instead_of_name"):
        parse_authority(text)


@pytest.mark.fault(48)
@pytest.mark.parametrize("text", ["localhost.:443", "localhost:80", "db:443", "metadata.internal:80", "x.local:443"])
def test_local_names_are_refused(text: str) -> None:
    with pytest.raises(HostRefused, match="local_name"):
        parse_authority(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("user@example.com:443", "user_name_in_host"), ("example.com", "bad_port"), ("example.com:0", "bad_port"),
        ("example.com:65536", "bad_port"), ("example.com:٤٤٣", "bad_port"), ("exa mple.com:443", "bad_name"),
        ("-x.example.com:443", "bad_name"), ("a..example.com:443", "bad_name"), (f"{'a' * 64}.com:443", "bad_name"),
        (f"{'a.' * 130}com:443", "bad_name"), ("exa/mple.com:443", "bad_name"), ("\0.example.com:443", "bad_name"),
    ],
)  # fmt: skip
def test_what_is_no_name_is_refused(text: str, reason: str) -> None:
    with pytest.raises(HostRefused, match=reason):
        parse_authority(text)


@pytest.mark.fault(55)
def test_names_are_compared_whole_and_normalised() -> None:
    assert parse_authority("EXAMPLE.com.:443") == Target("example.com", 443)
    check(LISTED, parse_authority("EXAMPLE.com.:443"))
    for other in ("example.com.evil.test", "notexample.com", "example.co", "xn--exmple-cua.com"):
        with pytest.raises(HostRefused):
            check(LISTED, Target(normal_host(other), 443) if not other.endswith("test") else Target(other, 443))
    assert normal_host("exämple.com") == "xn--exmple-cua.com"


def test_a_suffix_does_not_match_itself() -> None:
    assert matches("*.data.example.org", "a.b.data.example.org")
    assert not matches("*.data.example.org", "data.example.org")
    assert not matches("*.data.example.org", "evildata.example.org")


@pytest.mark.fault(54)
@pytest.mark.parametrize("port", [22, 25, 8080, 8443, 81, 444])
def test_other_ports_are_refused(port: int) -> None:
    for rules, host in ((LISTED, "example.com"), (WEB, "example.net")):
        with pytest.raises(HostRefused, match="port_not_allowed"):
            check(rules, Target(host, port))


def test_the_web_is_all_but_what_the_benchmark_denies() -> None:
    check(WEB, Target("example.net", 80))
    for host in ("answers.example.org", "x.mirror.example"):
        with pytest.raises(HostRefused, match="denied_by_benchmark"):
            check(WEB, Target(host, 443))


def test_the_deny_list_is_above_the_allow_list_and_none_lets_nothing_through() -> None:
    both = LISTED.model_copy(update={"deny_hosts": ["example.com"]})
    with pytest.raises(HostRefused, match="denied_by_benchmark"):
        check(both, Target("example.com", 443))
    with pytest.raises(HostRefused, match="not_on_allowlist"):
        check(NetworkRules(allow_hosts=["example.com"]), Target("example.com", 443))
