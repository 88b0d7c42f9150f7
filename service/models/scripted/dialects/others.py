"""Small endpoints beside the conversations: counting, embeddings, lists of models."""

import base64
import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from service.domain.models import TokenUsage
from service.models.scripted.values import items, text

_DIMENSIONS = 8


def count_tokens(raw: bytes) -> dict[str, Any]:
    return {"input_tokens": len(raw) // 4}


def count_gemini_tokens(raw: bytes) -> dict[str, Any]:
    return {"totalTokens": len(raw) // 4}


def models() -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "scripted"}]}


def embeddings(body: Mapping[str, Any]) -> tuple[dict[str, Any], TokenUsage]:
    """Return vectors that depend on nothing but the text, and what they took: a token per four characters."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else [str(item) for item in items(given)]
    size = body.get("dimensions")
    vectors = [_vector(each, size if isinstance(size, int) and 0 < size <= 4096 else _DIMENSIONS) for each in texts]
    packed = body.get("encoding_format") == "base64"
    tokens = sum(len(each) // 4 + 1 for each in texts)
    entries = [
        {"object": "embedding", "index": n, "embedding": _packed(vector) if packed else vector}
        for n, vector in enumerate(vectors)
    ]
    told = {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": entries, "model": text(body.get("model")).partition("@")[0], "usage": told}
    return answer, TokenUsage(input_tokens=tokens)


def _vector(source: str, size: int) -> list[float]:
    raw = hashlib.shake_256(source.encode()).digest(size)
    length = sum((byte - 127.5) ** 2 for byte in raw) ** 0.5
    return [(byte - 127.5) / length for byte in raw]


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
