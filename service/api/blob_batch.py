"""The body of a batch of small blobs: ``<sha256> <bytes>\\n``, the bytes, the next one."""

import re

from service.domain.errors import Invalid

MAX_BLOBS = 1_000
_HEAD = re.compile(rb"([0-9a-f]{64}) (0|[1-9][0-9]{0,9})\n")


def unpacked(body: bytes) -> dict[str, bytes]:
    """Return ``{sha256: content}``; whether they belong together is not looked at. Raises Invalid("bad_batch")."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(body):
        match = _HEAD.match(body, at)
        end = 0 if match is None else match.end() + int(match[2])
        if match is None or end > len(body):
            raise Invalid("bad_batch", f"at byte {at} there is no `<sha256> <bytes>`, newline and that many bytes")
        found[match[1].decode()] = body[match.end() : end]
        at = end
        if len(found) > MAX_BLOBS:
            raise Invalid("bad_batch", f"a batch has at most {MAX_BLOBS} blobs")
    return found
