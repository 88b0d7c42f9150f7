"""Images in registries: their manifests and blobs pass through here, for the import that asks on our own side.

The secret stays in this process. It goes to the registry that the project named, and to where that one sends for a
token; never along with a redirect.
"""

import asyncio
import base64
import hmac
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode, urljoin, urlsplit

from service.domain.credentials import Use
from service.domain.errors import Invalid
from service.domain.images import Reference
from service.domain.public_urls import parse_public_url
from service.gateway.auth import Refused, presented
from service.gateway.exchange import Exchange
from service.gateway.ports import CredentialUnavailable
from service.gateway.services import Secrets
from service.gateway.upstream import Asked, UpstreamAnswer, UpstreamFailed
from service.store import images
from service.store.database import Database
from service.store.rows_models import ImageRow

PREFIX = "/images/"
ACCEPT = ", ".join(
    ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
     "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
)  # fmt: skip
STALLED_S = 60.0
MOST_HOPS = 4
MAX_TOKEN_BYTES = 64 << 10
_PATH = re.compile(r"/images/(img_[0-9A-Z]{26})/(manifests|blobs)/([0-9a-f]{64})")
_PARAMETER = re.compile(r'(\w+)="([^"]{0,2000})"')
_LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class _Wanted:
    row: ImageRow
    reference: Reference
    secret: str | None
    path: str
    """``manifests/sha256:…`` or ``blobs/sha256:…``"""

    @property
    def url(self) -> str:
        host = self.reference.host
        # As other clients of registries do; only an operator's image may be on this machine.
        scheme = "http" if self.row.private and host.partition(":")[0] in _LOOPBACK else "https"
        return f"{scheme}://{host}/v2/{self.reference.name}/{self.path}"


class Registries:
    """Answers below ``/images/`` on our own side."""

    def __init__(self, db: Database, upstream: Asked, vault: Secrets, token: str) -> None:
        self._db, self._upstream, self._vault = db, upstream, vault
        self._token = token.encode()

    async def serve(self, exchange: Exchange) -> None:
        """Raises ClientGone, Unavailable."""
        try:
            wanted = await self._admitted(exchange)
            async with self._found(wanted) as answer:
                await _relay(exchange, answer)
        except (Refused, UpstreamFailed, TimeoutError) as error:
            if not exchange.started:
                refused = error if isinstance(error, Refused) else Refused(503, "registry_unavailable", _why(error))
                headers = {"content-type": "text/plain; charset=utf-8", "x-workstead-problem": refused.type}
                await exchange.answer(refused.status, headers, str(refused).encode())

    async def _admitted(self, exchange: Exchange) -> _Wanted:
        shown = presented(exchange.headers, exchange.query())
        if not hmac.compare_digest(shown.encode(errors="replace"), self._token):
            raise Refused(401, "token_invalid", "registries are for our own processes")
        path = _PATH.fullmatch(exchange.path())
        if path is None or exchange.method != "GET":
            raise Refused(404, "registry_unknown", "there is no such path")
        async with self._db.reading() as tx:
            row = await images.load(tx, path[1])
        if row is None or row.reference is None:
            raise Refused(404, "image_deleted", "the image was deleted")
        return _Wanted(row, Reference.of(row.reference), await self._secret(row), f"{path[2]}/sha256:{path[3]}")

    async def _secret(self, row: ImageRow) -> str | None:
        if row.credential_id is None:
            return None
        try:
            return await self._vault.secret(row.project_id, row.credential_id, Use.REGISTRY)
        except CredentialUnavailable as error:
            raise Refused(403, "registry_denied", str(error)) from None

    @asynccontextmanager
    async def _found(self, wanted: _Wanted) -> AsyncGenerator[UpstreamAnswer]:
        """Ask without a secret first: the registry says what it wants. Raises Refused, UpstreamFailed, TimeoutError."""
        private = wanted.row.private
        async with self._asked(wanted.url, {}, private=private) as answer:
            challenge = answer.headers.get("www-authenticate", "")
            if answer.status != 401:
                yield _checked(answer)
                return
        authorization = await self._authorization(wanted, challenge)
        async with self._asked(wanted.url, {"authorization": authorization}, private=private) as answer:
            yield _checked(answer)

    @asynccontextmanager
    async def _asked(self, url: str, headers: Mapping[str, str], *, private: bool) -> AsyncGenerator[UpstreamAnswer]:
        """Follow redirects; what they lead to gets no secret."""
        for _ in range(MOST_HOPS):
            onward = ""
            async with asyncio.timeout(STALLED_S) as headers_come:
                sent = {"accept": ACCEPT, "accept-encoding": "identity", "user-agent": "workstead", **headers}
                async with self._upstream.ask("GET", url, sent, b"", private=private) as answer:
                    if answer.status not in (301, 302, 303, 307, 308):
                        headers_come.reschedule(None)
                        yield answer
                        return
                    onward = urljoin(url, answer.headers.get("location", ""))
            url, headers = _allowed(onward, private=private), {}
        raise Refused(502, "registry_refused", "the registry sends us round in circles")

    async def _authorization(self, wanted: _Wanted, challenge: str) -> str:
        scheme, _, rest = challenge.partition(" ")
        basic = None if wanted.secret is None else f"Basic {base64.b64encode(wanted.secret.encode()).decode()}"
        if scheme.lower() == "basic":
            if basic is None:
                raise Refused(403, "registry_denied", "the registry wants a user name and a password")
            return basic
        told = dict(_PARAMETER.findall(rest))
        if scheme.lower() != "bearer" or "realm" not in told:
            raise Refused(502, "registry_refused", "the registry asks for a kind of proof that is not known here")
        scope = f"repository:{wanted.reference.name}:pull"
        query = urlencode({"scope": scope, **({"service": told["service"]} if "service" in told else {})})
        realm = _allowed(told["realm"], private=wanted.row.private)
        url = f"{realm}{'&' if urlsplit(realm).query else '?'}{query}"
        sent = {} if basic is None else {"authorization": basic}
        async with self._asked(url, sent, private=wanted.row.private) as answer, asyncio.timeout(STALLED_S):
            if answer.status in (401, 403):
                raise Refused(403, "registry_denied", "the registry does not know this user name and password")
            return f"Bearer {_token(await _checked(answer).start_of_body(MAX_TOKEN_BYTES))}"


def _checked(answer: UpstreamAnswer) -> UpstreamAnswer:
    """Raises Refused unless the registry gives what was asked for."""
    if answer.status == 200:
        return answer
    if answer.status in (401, 403):
        raise Refused(403, "registry_denied", f"the registry answers {answer.status}: it is private, or not there")
    if answer.status == 404:
        raise Refused(404, "registry_unknown", "the registry has no image of this digest")
    kind = "registry_unavailable" if answer.status >= 500 or answer.status == 429 else "registry_refused"
    raise Refused(503, kind, f"the registry answers {answer.status}")


def _token(data: bytes) -> str:
    try:
        told = json.loads(data)
        token = told.get("token") or told.get("access_token")
    except (ValueError, AttributeError, RecursionError):
        token = None
    if not isinstance(token, str) or not all("!" <= c <= "~" for c in token):
        raise Refused(502, "registry_refused", "the registry's token cannot be read")
    return token


def _allowed(url: str, *, private: bool) -> str:
    """Raises Refused where the registry leads to what no project may call."""
    try:
        parse_public_url(url, allow_private=private)
    except Invalid as error:
        raise Refused(502, "registry_refused", f"the registry leads elsewhere: {error.detail}") from None
    return url


async def _relay(exchange: Exchange, answer: UpstreamAnswer) -> None:
    async with asyncio.timeout(STALLED_S) as idle:
        await exchange.start(200, [("content-type", "application/octet-stream")])
        async for piece in answer.pieces:
            idle.reschedule(asyncio.get_running_loop().time() + STALLED_S)
            await exchange.send(piece)
        await exchange.end()


def _why(error: Exception) -> str:
    return "the registry does not answer in time" if isinstance(error, TimeoutError) else str(error)
