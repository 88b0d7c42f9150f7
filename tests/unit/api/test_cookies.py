"""Which cookie, where."""

import pytest
from starlette.responses import Response

from service.api.cookies import cookie_name, set_session
from service.api.state import ApiConfig


@pytest.mark.parametrize(
    ("url", "name", "secure"),
    [
        ("https://work.test", "__Host-workstead", True),
        ("https://127.0.0.1:8040", "__Host-workstead", True),
        ("http://work.test", "__Host-workstead", True),
        ("http://10.0.0.5:8040", "__Host-workstead", True),
        ("http://127.0.0.1:8040", "workstead", False),
        ("http://localhost:8040", "workstead", False),
        ("http://[::1]:8040", "workstead", False),
    ],
)
def test_secure_but_on_loopback(url: str, name: str, secure: bool) -> None:
    config = ApiConfig(public_url=url)
    response = Response()
    set_session(response, config, "s")
    header = response.headers["set-cookie"]
    assert cookie_name(config) == name
    assert header.startswith(f"{name}=s;")
    assert ("Secure" in header) == secure
    assert "HttpOnly" in header
    assert "SameSite=strict" in header
    assert "Domain" not in header
    assert "Path=/" in header


def test_origin_has_no_path() -> None:
    assert ApiConfig(public_url="https://work.test:8443/base/").origin == "https://work.test:8443"
