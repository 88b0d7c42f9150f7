"""What a call to a service costs, by the call and by what its body asks for."""

from decimal import Decimal
from typing import Any

import pytest

from service.domain.services import ServiceSpec
from service.gateway.auth import Refused
from service.gateway.service_prices import CallPrice, price_of

BASE = {"name": "media", "base_url": "https://media.example/v1"}


def spec(**changes: Any) -> ServiceSpec:
    return ServiceSpec.model_validate(BASE | changes)


def unit(field: str, usd: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "usd": usd, **more}


@pytest.mark.parametrize(
    ("changes", "body", "units", "usd"),
    [
        ({}, b"", None, None),
        ({"price_per_call_usd": "0.5"}, b"anything", None, "0.5"),
        ({"price_per_unit": unit("n", "0.04")}, b'{"n": 4}', "4", "0.16"),
        ({"price_per_unit": unit("n", "0.04")}, b"{}", "1", "0.04"),
        ({"price_per_unit": unit("n", "0.04"), "price_per_call_usd": "1"}, b"", "0", "1"),
        ({"price_per_unit": unit("seconds", "0.1")}, b'{"seconds": "8"}', "8", "0.8"),
        ({"price_per_unit": unit("seconds", "0.1")}, b'{"seconds": 2.5}', "2.5", "0.25"),
        (
            {"price_per_unit": unit("input", "15", counts="characters", per=1_000_000)},
            '{"input": "größer"}'.encode(),
            "6",
            "0.00009",
        ),
        ({"price_per_unit": unit("input", "15", counts="characters")}, b"{}", "0", "0"),
    ],
)
def test_a_price(changes: dict[str, Any], body: bytes, units: str | None, usd: str | None) -> None:
    wanted = CallPrice(None if units is None else Decimal(units), None if usd is None else Decimal(usd))
    assert price_of(spec(**changes), body) == wanted


@pytest.mark.parametrize(
    "body",
    [b'{"n": true}', b'{"n": null}', b'{"n": "4 "}', b'{"n": 1e400}', b'{"n": 9999999999}', b'{"n": [4]}', b"\xff", b"4",
     b'{"n": "\xd9\xa4"}', b"[" * 100_000],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        price_of(spec(price_per_unit=unit("n", "1")), body)
    assert (refused.value.status, refused.value.type) == (400, "units_unreadable")
