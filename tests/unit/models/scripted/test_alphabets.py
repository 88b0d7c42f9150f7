"""Google's SDK writes pictures in the alphabet of base64 that is safe in URLs, the others in the usual one."""

import base64
import io
import random
from typing import Literal

import pytest
from PIL import Image

from service.models.scripted.looking import shows
from service.models.scripted.scenario import Pixel

HERE, ELSEWHERE = Pixel(x=40, y=10, rgb=(10, 200, 30)), Pixel(x=3, y=3, rgb=(10, 200, 30))
ENCODERS = {"+/": base64.b64encode, "-_": base64.urlsafe_b64encode}


def noisy(kind: Literal["PNG", "WEBP", "JPEG"]) -> bytes:
    """Return a picture with a green square, and enough else that its base64 has all characters."""
    picture = Image.frombytes("RGB", (64, 32), random.Random(7).randbytes(64 * 32 * 3))
    picture.paste((10, 200, 30), (32, 0, 64, 32))
    written = io.BytesIO()
    picture.save(written, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return written.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
@pytest.mark.parametrize("alphabet", list(ENCODERS))
def test_both_alphabets_of_base64_are_read(kind: Literal["PNG", "WEBP", "JPEG"], alphabet: str) -> None:
    data = ENCODERS[alphabet](noisy(kind)).decode()
    assert set(alphabet) & set(data)
    for body in ({"image_url": f"data:image/png;base64,{data}"}, {"parts": [{"inline_data": {"data": data}}]}):
        assert shows(body, [HERE])
        assert not shows(body, [ELSEWHERE])
