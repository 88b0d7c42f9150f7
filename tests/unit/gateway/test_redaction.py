"""Secrets are found in every form in which they are written, wherever the bytes are cut."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.gateway.redaction import Redactor

_KEY = 'sk-ant/api03+"Zß\\x=='
_TOKEN = "wsr_0123456789abcdef"


def _b64(before: bytes, after: bytes) -> bytes:
    return base64.b64encode(before + _KEY.encode() + after)


@pytest.mark.parametrize(
    "form",
    [
        _KEY.encode(),
        json.dumps(_KEY)[1:-1].encode(),
        json.dumps(_KEY, ensure_ascii=False)[1:-1].encode(),
        json.dumps(json.dumps(_KEY))[3:-3].encode(),
        json.dumps(_KEY)[1:-1].replace("/", "\\/").encode(),
        quote(_KEY).encode(),
        quote(_KEY, safe="").encode(),
        quote(_KEY, safe="").lower().encode() if quote(_KEY).islower() else quote_plus(_KEY).encode(),
        _KEY.encode().hex().encode(),
    ],
)
def test_every_form_is_found(form: bytes) -> None:
    clean = Redactor([_KEY]).redact(b"before " + form + b" after")
    assert clean.startswith(b"before [redacted]")
    assert len(clean) == len(form) + 13
    assert clean.endswith(b" after")


@pytest.mark.parametrize("before", [b"", b"x", b"Bearer ", b"user:"])
@pytest.mark.parametrize("after", [b"", b"y", b'"}'])
def test_base64_hides_nothing_wherever_the_secret_stands(before: bytes, after: bytes) -> None:
    for coded in (_b64(before, after), base64.urlsafe_b64encode(before + _KEY.encode() + after)):
        clean = Redactor([_KEY]).redact(b"<" + coded + b">")
        assert b"[redacted]" in clean
        padded = clean.strip(b"<>")
        # What is left of the secret at its ends is less than a character.
        assert len(padded.replace(b"[redacted]", b"").replace(b"*", b"")) <= len(
            base64.b64encode(before)
        ) + 2 + 4 + len(base64.b64encode(after))


@given(st.binary(max_size=120), st.lists(st.integers(0, 400), max_size=12), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_cut_gives_the_same(noise: bytes, cuts: list[int], double: bool) -> None:
    redactor = Redactor([_KEY, _TOKEN, _TOKEN[:9]])
    data = noise + _TOKEN.encode() + noise[:3] + json.dumps(_KEY).encode() + _TOKEN.encode()[:12] + noise
    data = data + data if double else data
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    stream = redactor.stream()
    pieces = [stream.feed(data[a:b]) for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert b"".join([*pieces, stream.end()]) == redactor.redact(data)
    assert _TOKEN.encode()[:9] not in redactor.redact(data)


@given(st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=4), st.text("ab", max_size=60))
@settings(max_examples=300, deadline=None)
def test_overlapping_secrets_are_found_alike_in_pieces(secrets: list[str], text: str) -> None:
    redactor, stream = Redactor(secrets), None
    for size in (1, 2, 5):
        stream = redactor.stream()
        pieces = [stream.feed(text[i : i + size].encode()) for i in range(0, len(text), size)]
        assert b"".join([*pieces, stream.end()]) == redactor.redact(text.encode())


def test_nothing_is_held_back_without_need() -> None:
    stream = Redactor([_TOKEN]).stream()
    assert stream.feed(b'data: {"x":1}\n\n') == b'data: {"x":1}\n\n'
    assert stream.feed(b"data: wsr_01") == b"data: "
    assert stream.feed(b"23x") == b"wsr_0123x"
    assert Redactor([]).stream().feed(b"wsr_") == b"wsr_"


def test_json_and_text_are_cleaned_and_short_words_are_none() -> None:
    redactor = Redactor([_TOKEN, "abc"])
    value = {"abc": [1, None, f"x{_TOKEN}"], _TOKEN: True}
    assert redactor.redact_json(value) == {"abc": [1, None, "x[redacted]**********"], "[redacted]**********": True}
    assert redactor.redact_text("\udc80" + _TOKEN).startswith("\udc80[redacted]")
    assert _TOKEN not in repr(redactor)
