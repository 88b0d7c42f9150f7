"""Headers of files that agents named."""

import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.downloads import FALLBACK_TYPE, disposition, safe_type
from service.api.zip_stream import member_name

SHAPE = re.compile(r"attachment; filename=\"[^\"\\\x00-\x1f\x7f-\uffff]+\"; filename\*=UTF-8''[A-Za-z0-9%._~-]*\Z")


@pytest.mark.fault(69, 17)
@given(st.text(max_size=300))
@pytest.mark.parametrize("prefix", ["", '"><img src=x onerror=alert(1)>.png', "a\r\nSet-Cookie:x", "\u202egnp.exe"])
def test_any_name_is_a_valid_header(prefix: str, name: str) -> None:
    value = disposition(prefix + name)
    assert SHAPE.match(value), value
    value.encode("latin-1")


def test_the_exact_name_survives() -> None:
    name = "Jahresabschluß 2026 “final”%FF.xlsx"
    assert unquote_to_bytes(disposition(name).rpartition("''")[2]).decode() == name


@pytest.mark.fault(67, 68)
@pytest.mark.parametrize(
    "mime",
    [
        "text/html",
        "image/svg+xml",
        "application/xhtml+xml",
        "text/xml",
        "application/xml",
        "text/javascript",
        None,
        "x",
    ],
)
def test_what_a_browser_might_run_is_an_octet_stream(mime: str | None) -> None:
    assert safe_type(mime) == FALLBACK_TYPE


def test_other_types_pass() -> None:
    assert safe_type("text/csv") == "text/csv; charset=utf-8"
    assert safe_type("image/png") == "image/png"


def test_zip_members_stay_inside() -> None:
    assert member_name("/etc/passwd") == "etc/passwd"
    assert member_name("output/..\\..\\x") == "output/..%5C..%5Cx"
    assert member_name("C:/x") == "C%3A/x"
