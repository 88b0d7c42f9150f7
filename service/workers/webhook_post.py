"""One POST to an address that a user chose: only to global addresses, nothing followed, nothing read (threat T17)."""

import asyncio
import functools
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import httpx

from service.domain.public_urls import PublicUrl, is_global


class PostFailed(Exception):
    """``reason``: name_not_found | address_not_public | connection_failed | tls_failed | timeout | protocol_error."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Poster:
    """Calls URLs, at most ``concurrency`` at once, ``timeout_s`` seconds each from the name's look-up to the status.

    A name is resolved once, every address that it has must be global, and the first of them is what is connected to;
    certificate and SNI are the name's. No connection serves two calls: what a pool shares is an address, not a name.
    """

    def __init__(self, *, timeout_s: float = 10.0, concurrency: int = 16, allow_private: bool = False) -> None:
        self._timeout_s = timeout_s
        self._allow_private = allow_private
        self._resolvers = ThreadPoolExecutor(concurrency, thread_name_prefix="webhook-names")
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=0)
        # No environment: a proxy would resolve the name again.
        self._client = httpx.AsyncClient(limits=limits, timeout=timeout_s, trust_env=False, follow_redirects=False)

    async def post(self, url: PublicUrl, body: bytes, headers: Mapping[str, str]) -> int:
        """Return the status of the answer, whose body stays unread. Raises PostFailed."""
        try:
            async with asyncio.timeout(self._timeout_s):
                address = await self._resolve(url)
                return await self._send(url, address, body, headers)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise PostFailed("timeout") from error
        except httpx.ConnectError as error:
            raise PostFailed("tls_failed" if _is_tls(error) else "connection_failed") from error
        except (httpx.HTTPError, OSError) as error:
            raise PostFailed("protocol_error") from error

    async def close(self) -> None:
        await self._client.aclose()
        self._resolvers.shutdown(wait=False, cancel_futures=True)

    async def _resolve(self, url: PublicUrl) -> str:
        addresses = [url.address] if url.address is not None else await self._look_up(url.host, url.port)
        if not addresses:
            raise PostFailed("name_not_found")
        if not self._allow_private and not all(is_global(address) for address in addresses):
            raise PostFailed("address_not_public")
        return addresses[0]

    async def _look_up(self, host: str, port: int) -> list[str]:
        # The final dot keeps the resolver from trying the host's search domains.
        name = host if self._allow_private else f"{host}."
        ask = functools.partial(socket.getaddrinfo, name, port, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._resolvers, ask)
        except (OSError, UnicodeError) as error:
            raise PostFailed("name_not_found") from error
        return [str(entry[4][0]) for entry in found]

    async def _send(self, url: PublicUrl, address: str, body: bytes, headers: Mapping[str, str]) -> int:
        request = self._client.build_request(
            "POST",
            url.at(address),
            content=body,
            headers={**headers, "Host": url.authority, "Connection": "close"},
            extensions={"sni_hostname": url.host},
        )
        async with AsyncExitStack() as stack:
            answer = await self._client.send(request, stream=True)
            stack.push_async_callback(answer.aclose)
            return answer.status_code


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
