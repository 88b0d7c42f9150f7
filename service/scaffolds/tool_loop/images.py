"""Images that a model can be shown, known by their first bytes and not by what somebody calls them."""

import base64

SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def media_type(data: str) -> str | None:
    """Return the media type of an image in base64; null: it is none that can be shown."""
    return next((mime for magic, mime in SIGNATURES.items() if _begins(data, magic)), None)


def _begins(data: str, magic: bytes) -> bool:
    try:
        return base64.b64decode(data[:24]).startswith(magic)
    except ValueError:
        return False
