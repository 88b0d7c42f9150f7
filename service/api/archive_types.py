"""The media types of task archives, and the route that takes them where another takes JSON."""

import re
from typing import Any

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from service.archives.contract import ArchiveKind

ARCHIVE_TYPES = {
    "application/x-tar": ArchiveKind.TAR,
    "application/gzip": ArchiveKind.TAR_GZIP,
    "application/x-gzip": ArchiveKind.TAR_GZIP,
    "application/zstd": ArchiveKind.TAR_ZSTD,
    "application/x-xz": ArchiveKind.TAR_XZ,
    "application/zip": ArchiveKind.ZIP,
    "application/x-zip-compressed": ArchiveKind.ZIP,
}
REQUEST_BODY: dict[str, Any] = {
    "requestBody": {"content": {name: {"schema": {"type": "string", "format": "binary"}} for name in ARCHIVE_TYPES}}
}
PATH = "/v1/tasks"
GRADINGS_PATH = "/v1/gradings"
_DELIVERABLE = re.compile(r"/v1/runs/[^/]+/deliverable")
_FILE = re.compile(r"/v1/runs/[^/]+/files/.")


def archive_kind(headers: Headers) -> ArchiveKind | None:
    return ARCHIVE_TYPES.get(headers.get("content-type", "").partition(";")[0].strip().lower())


def is_archive_upload(scope: Scope) -> bool:
    """Tell whether a request brings an archive, whose size has a limit of its own."""
    if scope["type"] != "http":
        return False
    method, path = scope["method"], scope["path"]
    takes = path in (PATH, GRADINGS_PATH) if method == "POST" else method == "PUT" and _DELIVERABLE.fullmatch(path)
    return bool(takes) and archive_kind(Headers(scope=scope)) is not None


def is_file_write(scope: Scope) -> bool:
    """Tell whether a request writes a file into a run's sandbox."""
    return scope["method"] == "PUT" and _FILE.match(scope["path"]) is not None


class ArchiveRoute(APIRoute):
    """Matches requests that bring an archive; all others go on to the next route of the same path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if is_archive_upload(scope) else (Match.NONE, {})
