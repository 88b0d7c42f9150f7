"""``/preview/{capability}/{path}``: what agents delivered, as a browser shows it, where it can do no harm.

Documents run in an origin of their own that nothing shares (CSP ``sandbox`` without ``allow-same-origin``, also when
they are opened without a frame), load from their capability's path only, and send nothing anywhere. No cookie is read.
With ``api.preview_origin`` these answers come under that name only, and all others under the other.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.auth import State
from service.api.charging import check_failures, note_failure
from service.api.downloads import FALLBACK_TYPE, file_answer
from service.api.problems import problem
from service.api.state import ApiConfig
from service.domain.errors import NotFound
from service.store import previews

router = APIRouter(include_in_schema=False)
ROOT = "/preview/"
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?\Z|\[[0-9a-fA-F:.]{2,45}\](:\d{1,5})?\Z")
_TYPES = {
    "html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml", "svg": "image/svg+xml",
    "xml": "application/xml", "css": "text/css", "js": "text/javascript", "mjs": "text/javascript",
    "cjs": "text/javascript", "json": "application/json", "map": "application/json", "wasm": "application/wasm",
    "webmanifest": "application/manifest+json", "txt": "text/plain", "csv": "text/csv", "md": "text/plain",
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "avif": "image/avif", "bmp": "image/bmp", "ico": "image/x-icon", "mp3": "audio/mpeg", "wav": "audio/wav",
    "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg", "m4a": "audio/mp4", "flac": "audio/flac",
    "aac": "audio/aac", "mp4": "video/mp4", "m4v": "video/mp4", "webm": "video/webm", "ogv": "video/ogg",
    "mov": "video/quicktime", "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf",
    "glb": "model/gltf-binary", "gltf": "model/gltf+json",
}  # fmt: skip
_CHARSETS = frozenset({"css", "js", "mjs", "cjs", "txt", "csv", "md"})
"""Documents say themselves how they are encoded; for these the server does."""
_DENIED = (
    "accelerometer", "autoplay", "camera", "clipboard-read", "clipboard-write", "display-capture",
    "encrypted-media", "fullscreen", "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi", "payment",
    "picture-in-picture", "publickey-credentials-get", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip


def type_of(path: str) -> str:
    """Return the media type by the name's extension: a browser that may not sniff goes by it."""
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    mime = _TYPES.get(extension, FALLBACK_TYPE)
    return f"{mime}; charset=utf-8" if extension in _CHARSETS else mime


def origins(config: ApiConfig, request: Request) -> list[str]:
    """Return where previews are loaded from: the operator's origin for them, else ours as the browser knows it."""
    if config.preview_origin is not None:
        return [config.preview_origin]
    host = request.headers.get("host", "")
    asked = [f"{request.url.scheme}://{host}"] if _HOST.match(host) else []
    return list(dict.fromkeys([config.origin, *asked]))


def preview_headers(bases: Iterable[str], tag: str) -> dict[str, str]:
    """Return the headers of every answer; ``bases`` are the URLs that all of a document's parts lie below."""
    here = " ".join(bases)
    rules = (
        "sandbox allow-scripts",
        f"default-src {here} data: blob: 'unsafe-inline' 'unsafe-eval'",
        f"connect-src {here} data: blob:",
        f"base-uri {here}",
        "form-action 'none'",
        "object-src 'none'",
    )
    return {
        "Content-Security-Policy": "; ".join(rules),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": ", ".join(f"{name}=()" for name in _DENIED),
        "X-DNS-Prefetch-Control": "off",
        "Cross-Origin-Opener-Policy": "same-origin",
        # An opaque origin is the same as none: what it loads must be open to all who hold the capability.
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Access-Control-Allow-Origin": "*",
        "Cache-Control": "private, no-cache",
        "ETag": tag,
    }


@router.head(ROOT + "{capability}/{path:path}")
@router.get(ROOT + "{capability}/{path:path}")
async def preview(capability: str, path: str, request: Request, state: State) -> Response:
    """Answer with a file of the capability's tree; a folder is its ``index.html``."""
    async with state.db.reading() as tx:
        try:
            tree = await previews.opened(tx, state.secrets, capability)
        except NotFound:
            # Only then: whoever has a good one must not wait for what others at the same address try.
            check_failures(request, state, b"")
            note_failure(request, state)
            raise
        file = await previews.find(tx, tree, path)
    bases = [f"{origin}{ROOT}{capability}/" for origin in origins(state.config, request)]
    headers = preview_headers(bases, f'"{file.sha256}"')
    return file_answer(request, state.blobs.open(file.sha256), file.size_bytes, type_of(file.path), headers)


class PreviewHost:
    """ASGI middleware where previews have an origin of their own: nothing else is there, and they are nowhere else."""

    def __init__(self, app: ASGIApp, origin: str) -> None:
        self._app = app
        self._host = urlsplit(origin).netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        there = Headers(scope=scope).get("host", "").lower() == self._host
        if there == scope["path"].startswith(ROOT):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await problem(404, "route_not_found")(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
