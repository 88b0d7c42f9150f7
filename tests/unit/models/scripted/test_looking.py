"""What a script sees of a picture is the same in each API's words for it."""

import base64
import io
import random
from typing import Any, Literal

import pytest
from PIL import Image

from service.domain.errors import Invalid
from service.models.scripted.looking import shows
from service.models.scripted.scenario import Pixel

HERE, ELSEWHERE = Pixel(x=40, y=10, rgb=(10, 200, 30)), Pixel(x=3, y=3, rgb=(10, 200, 30))


def noisy(kind: Literal["PNG", "WEBP", "JPEG"]) -> bytes:
    """Return a picture whose base64 has characters of both alphabets; it has a green square."""
    picture = Image.frombytes("RGB", (64, 32), random.Random(7).randbytes(64 * 32 * 3))
    picture.paste((10, 200, 30), (32, 0, 64, 32))
    written = io.BytesIO()
    picture.save(written, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return written.getvalue()


def body(data: str, style: str) -> dict[str, Any]:
    if style == "url":
        return {"input": [{"output": {"image_url": f"data:image/png;base64,{data}"}}]}
    return {"contents": [{"parts": [{"functionResponse": {"parts": [{"inline_data": {"data": data}}]}}]}]}


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
@pytest.mark.parametrize("style", ["url", "gemini"])
def test_both_alphabets_of_base64_are_read(kind: Literal["PNG", "WEBP", "JPEG"], style: str) -> None:
    encode = base64.b64encode if style == "url" else base64.urlsafe_b64encode
    data = encode(noisy(kind)).decode()
    assert set(data) & ({"+", "/"} if style == "url" else {"-", "_"})
    assert shows(body(data, style), [HERE])
    assert not shows(body(data, style), [ELSEWHERE])
    assert not shows(body(data, style), [Pixel(x=4000, y=1, rgb=(0, 0, 0))])


def test_the_last_picture_counts_and_none_shows_nothing() -> None:
    black = io.BytesIO()
    Image.new("RGB", (64, 32)).save(black, "PNG")
    first, last = (base64.b64encode(data).decode() for data in (noisy("PNG"), black.getvalue()))
    both = {"input": [*body(first, "url")["input"], *body(last, "url")["input"]]}
    assert not shows(both, [HERE])
    assert not shows({"input": "nothing"}, [HERE])
    assert shows({"input": "nothing"}, [])


def test_a_picture_that_cannot_be_read_is_said() -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        shows(body("iVBORw0KGgoAAAA=", "url"), [HERE])
