"""Which calls of a gateway service may leave."""

import pytest
from pydantic import ValidationError

from service.domain.services import AllowedCall, CredentialPlace, ServiceSpec, path_allowed


def spec(*allow: AllowedCall) -> ServiceSpec:
    return ServiceSpec(name="search", base_url="https://api.example.com/v2", allow=list(allow))


SEARCH = spec(
    AllowedCall(methods=["GET"], path="/items/*"),
    AllowedCall(methods=["POST"], path="/search"),
    AllowedCall(methods=["GET", "HEAD"], path="/simple/**"),
)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/items/42"),
        ("POST", "/search"),
        ("GET", "/simple/"),
        ("GET", "/simple/a/b%20c"),
        ("HEAD", "/simple/a/"),
        ("GET", "/simple"),
    ],
)
def test_what_matches_may_leave(method: str, path: str) -> None:
    assert path_allowed(SEARCH, method, path)


@pytest.mark.fault(42)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/items/42"),
        ("GET", "/items"),
        ("GET", "/items/"),
        ("GET", "/items/1/2"),
        ("GET", "/search"),
        ("POST", "/search/"),
        ("GET", "/simple/../items/1"),
        ("GET", "/simple/./a"),
        ("GET", "/simple//admin"),
        ("GET", "/simple/%2e%2e/admin"),
        ("GET", "/simple/..%2fadmin"),
        ("GET", "/simple/a%5cb"),
        ("GET", "/simple/%252e%252e/admin"),
        ("GET", "/simple/a%00"),
        ("GET", "/simple/%zz"),
        ("GET", "/simple/a\\b"),
        ("GET", "/simple/a?b"),
        ("GET", "/simple/a b"),
        ("GET", ""),
        ("GET", "/"),
    ],
)
def test_nothing_else_leaves(method: str, path: str) -> None:
    assert not path_allowed(SEARCH, method, path)


@pytest.mark.parametrize(
    "path",
    ["items", "/a/**/b", "/../a", "/a//b", "/a%20b", "/a b", "/a/x*", "/@*", "/a%2f", "/a%2f..", "/a%2f**", "/%2e%2fb"],
)
def test_patterns_that_mean_nothing_clear_are_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        AllowedCall(path=path)


NPM = spec(
    AllowedCall(methods=["GET"], path="/@*%2f*"),
    AllowedCall(methods=["GET"], path="/-/package/@*%2F*/dist-tags"),
    AllowedCall(methods=["GET"], path="/**"),
)


@pytest.mark.parametrize(
    "path", ["/@scope%2fname", "/@scope%2Fname", "/-/package/@a%2fb/dist-tags", "/left-pad", "/@a/b/-/b-1.0.0.tgz"]
)
def test_an_escaped_slash_passes_where_a_pattern_has_one(path: str) -> None:
    assert path_allowed(NPM, "GET", path)


@pytest.mark.fault(42)
@pytest.mark.parametrize(
    "path",
    [
        "/scope%2fname",
        "/@%2fname",
        "/@scope%2f",
        "/%2fname",
        "/@scope%2f..",
        "/@scope%2f%2e%2e",
        "/@scope%2fname%2fx",
        "/@scope%2fname/x",
        "/x/@scope%2fname",
        "/-/package/@a%2f../dist-tags",
        "/-/package/@a%5cb/dist-tags",
        "/@scope%252fname",
        "/..%2f..",
    ],
)
def test_an_escaped_slash_passes_nowhere_else(path: str) -> None:
    assert not path_allowed(NPM, "GET", path)


@pytest.mark.parametrize("name", ["Host", "content-length", "Cookie", "a b", "x\r\ny"])
def test_a_credential_does_not_go_where_it_would_break_the_request(name: str) -> None:
    with pytest.raises(ValidationError):
        CredentialPlace(place="header", name=name)
