"""Receivers refuse what is forged, changed, old or copied."""

import base64
import json
import secrets
from datetime import UTC, datetime, timedelta

import pytest

from service.domain.webhooks import HookSecrets, new_secret, signature_header
from workstead.webhooks import WINDOW_S, Seen, Unverified, verify

SECRET = new_secret()
NOW = 1_800_000_000
BODY = json.dumps({"type": "run.done", "timestamp": "2027-01-15T08:00:00.000Z", "data": {"id": "run_1"}}).encode()


def headers(body: bytes = BODY, at: int = NOW, *keys: str, message_id: str = "msg_1") -> dict[str, str]:
    signature = signature_header(keys or (SECRET,), message_id, at, body)
    return {"Webhook-Id": message_id, "webhook-timestamp": str(at), "webhook-signature": signature}


def refused(given: dict[str, str], body: bytes = BODY, now: float = NOW, seen: Seen | None = None) -> str:
    with pytest.raises(Unverified) as caught:
        verify(SECRET, given, body, now, seen=seen)
    return caught.value.reason


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of the Standard Webhooks reference libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    given = signature_header([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert given == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_the_service_signs_is_accepted() -> None:
    assert verify(SECRET, headers(), BODY, NOW)["data"] == {"id": "run_1"}
    for drift in (-WINDOW_S, WINDOW_S):
        assert verify(SECRET, headers(), BODY, NOW + drift)["type"] == "run.done"
    assert verify([new_secret(), SECRET], headers(), BODY, NOW)["type"] == "run.done"


@pytest.mark.fault(109)
def test_a_six_minute_old_signature_is_rejected_and_so_is_a_copy() -> None:
    assert refused(headers(at=NOW - 360)) == "too_old"
    assert refused(headers(at=NOW + 360)) == "too_new"
    assert refused(headers(at=NOW - WINDOW_S - 1)) == "too_old"
    seen = Seen()
    assert verify(SECRET, headers(), BODY, NOW, seen=seen)
    assert refused(headers(), seen=seen) == "replayed"
    assert refused(headers(), now=NOW + WINDOW_S, seen=seen) == "replayed"
    assert verify(SECRET, headers(at=NOW + 5), BODY, NOW + 5, seen=seen)  # sent again by the service
    assert verify(SECRET, headers(message_id="msg_2"), BODY, NOW, seen=seen)


@pytest.mark.fault(109)
def test_what_is_changed_or_forged_is_rejected() -> None:
    right = headers()
    assert refused(right, BODY + b" ") == "bad_signature"
    assert refused(right | {"Webhook-Id": "msg_2"}) == "bad_signature"
    assert refused(right | {"webhook-timestamp": str(NOW + 1)}) == "bad_signature"
    assert refused(headers(BODY, NOW, new_secret())) == "bad_signature"
    assert refused(right | {"webhook-signature": ""}) == "bad_signature"
    assert refused(right | {"webhook-signature": right["webhook-signature"].removeprefix("v1,")}) == "bad_signature"
    assert refused(right | {"webhook-signature": "v2," + right["webhook-signature"][3:]}) == "bad_signature"
    many = " ".join(["v1,AAAA"] * 8 + [right["webhook-signature"]])
    assert refused(right | {"webhook-signature": many}) == "bad_signature"
    for stamp in ("", "-1", "1e9", "١٨٠٠٠٠٠٠٠٠", "9" * 40):
        assert refused(right | {"webhook-timestamp": stamp}) == "bad_timestamp"
    for missing in right:
        assert refused({k: v for k, v in right.items() if k != missing}) == "missing_header"
    for body in (b"[]", b"{", b"\xff", b"[" * 100_000):
        assert refused(headers(body), body) == "bad_body"


def test_memory_of_what_was_seen_is_bounded() -> None:
    seen = Seen(most=3)
    for n in range(50):
        assert seen.add(f"msg_{n}", NOW, NOW)
    assert not seen.add("msg_49", NOW, NOW)
    assert len(seen._until) <= 4  # pyright: ignore[reportPrivateUsage]
    assert seen.add("msg_49", NOW, NOW + 3 * WINDOW_S)
    assert len(seen._until) == 1  # pyright: ignore[reportPrivateUsage]


def test_a_rotated_secret_is_signed_with_for_a_day() -> None:
    now = datetime.fromtimestamp(NOW, UTC)
    old = HookSecrets.new()
    new = old.rotated(now)
    for at, valid in ((now, 2), (now + timedelta(hours=23, minutes=59), 2), (now + timedelta(hours=24), 1)):
        keys = new.valid_at(at)
        assert keys[:1] == [new.newest]
        assert len(keys) == valid
    both = headers(BODY, NOW, *new.valid_at(now))
    assert verify(old.newest, both, BODY, NOW) == verify(new.newest, both, BODY, NOW)
    assert len(new.rotated(now).keys) == 2


def test_a_secret_that_is_none_is_said_at_once() -> None:
    for bad in ("whsec_***", "whsec_" + base64.b64encode(secrets.token_bytes(4)).decode()):
        with pytest.raises(ValueError, match="not a webhook secret"):
            verify(bad, headers(), BODY, NOW)
