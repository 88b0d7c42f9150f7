"""Opaque cursors of lists, as clients carry them: a position, and a mark of the list that it belongs to.

A cursor opens nothing that its list would not: the project's predicate is in every query.
"""

import base64
import binascii
import json
from typing import cast

from service.domain.errors import Invalid

MAX_LENGTH = 2000


def encode(position: tuple[str, str], mark: str) -> str:
    """Return the opaque form of ``position`` in the list that ``mark`` names."""
    raw = json.dumps([*position, mark], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text: str, mark: str) -> tuple[str, str]:
    """Return the position. Raises Invalid("bad_cursor") for anything that this list did not hand out."""
    if len(text) > MAX_LENGTH:
        raise Invalid("bad_cursor", "the cursor is damaged")
    try:
        raw: object = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise Invalid("bad_cursor", "the cursor is damaged") from error
    match cast("list[object]", raw) if isinstance(raw, list) else []:
        case [str(key), str(row_id), str(found)] if found == mark and "\x00" not in key + row_id:
            return key, row_id
        case _:
            raise Invalid("bad_cursor", "the cursor belongs to another list, filter or sort")
