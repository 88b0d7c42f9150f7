"""Driving a run from outside: the client's own loop in a sandbox of the service."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of
from workstead.errors import Conflict
from workstead.heartbeat import LEASE_HEADER, Heartbeat
from workstead.models_driving import Assignment, DesktopActed, Executed, Lease, ListedFile, MessageReply

LOOK_S = 0.5
"""Between two tries to claim a run that is not running yet."""


class AsyncDrive:
    """A run in this driver's hands. Use as a context manager; :meth:`AsyncClient.drive` makes it.

    Entering waits until the run is running and claims it; leaving without ``finish`` gives it back for another driver.
    Every call raises Conflict ``lease_lost`` when the run is over or somebody else's, and Problem, Disconnected.
    """

    def __init__(self, http: AsyncTransport, url: str, token: str, run_id: str, holder: str) -> None:
        self.run_id = run_id
        self.holder = holder
        self._http = http
        self._url = url
        self._token = token
        self._headers: dict[str, str] = {}
        self._beat: Heartbeat | None = None
        self._lease: Lease | None = None
        self._finished = False

    async def __aenter__(self) -> Self:
        while self._lease is None:
            try:
                body = await self._http.json("POST", self._path("claim"), json={"holder": self.holder})
                self._lease = Lease.model_validate(body)
            except Conflict as error:
                if error.type != "run_not_ready" or await self._over():
                    raise
                await asyncio.sleep(LOOK_S)
        secret = self._lease.lease or ""
        self._headers = {LEASE_HEADER: secret}
        self._beat = Heartbeat(self._url, self._token, self.run_id, secret, self._lease.heartbeat_s)
        self._beat.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beat is not None:
            self._beat.__exit__(kind, error, trace)
        if not self._finished:
            try:
                await self.release()
            except Conflict:
                return  # it is not ours any more

    @property
    def lease(self) -> Lease:
        assert self._lease is not None
        return self._lease

    async def assignment(self) -> Assignment:
        """Return what is to be done."""
        return Assignment.model_validate(await self._http.json("GET", self._path("assignment")))

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        call_id: str | None = None,
    ) -> Executed:
        """Run a program to its end; a call that broke off is asked for again and not run twice. Raises Invalid."""
        body: dict[str, Any] = {"argv": list(argv), "stdin": stdin, "env": dict(env or {}), "timeout_s": timeout_s}
        body["call_id"] = call_id or uuid.uuid4().hex
        if cwd is not None:
            body["cwd"] = cwd
        headers = {**self._headers, "Idempotency-Key": body["call_id"]}
        answer = await self._http.json("POST", self._path("exec"), json=body, headers=headers, wait_s=timeout_s + 120)
        return Executed.model_validate(answer)

    async def read(self, path: str) -> bytes:
        """Return a file below the workspace. Raises NotFound, TooLarge."""
        answer = await self._http.request("GET", self._file(path), headers=self._headers, wait_s=120)
        return answer.content

    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a file below the workspace; parents are made. Raises Invalid, TooLarge."""
        params = {"executable": "true"} if executable else {}
        await self._http.request(
            "PUT", self._file(path), content=data, params=params, headers=self._headers, wait_s=120
        )

    async def list(self, path: str = "") -> Sequence[ListedFile]:
        """Return the entries of one folder below the workspace, at most 1 000."""
        answer = await self._http.json("GET", self._path("files"), params={"path": path}, headers=self._headers)
        return [ListedFile.model_validate(item) for item in items_of(answer, path)]

    async def usage(self, **totals: Any) -> None:
        """Declare what model calls took that did not go through the gateway: totals so far (``input_tokens`` …)."""
        await self._http.request("POST", self._path("usage"), json=totals, headers=self._headers)

    async def beat(self) -> Lease:
        """Keep the lease; a thread does so all the time, and every other call too."""
        return Lease.model_validate(await self._http.json("POST", self._path("heartbeat"), headers=self._headers))

    async def message(
        self, text: str, attachments: Mapping[str, str] | None = None, *, message_id: str | None = None
    ) -> MessageReply:
        """Ask the task's simulated client; a message that broke off is asked for again and counted once.

        ``attachments``: name → text. Raises NotFound (no client), Conflict ``no_messages_left``, Unavailable.
        """
        given = [{"name": name, "content": content} for name, content in (attachments or {}).items()]
        body: dict[str, Any] = {"text": text, "attachments": given, "message_id": message_id or uuid.uuid4().hex}
        headers = {**self._headers, "Idempotency-Key": body["message_id"]}
        found = await self._http.json("POST", self._path("messages"), json=body, headers=headers, wait_s=1200)
        return MessageReply.model_validate(found)

    async def desktop_actions(
        self,
        actions: Sequence[Mapping[str, Any]] = (),
        *,
        vocabulary: str | None = None,
        payloads: Sequence[Mapping[str, Any]] = (),
        call_id: str | None = None,
        wait_s: float = 300,
        **options: Any,
    ) -> DesktopActed:
        """Do a batch on the run's screen: ``actions`` of ours, or ``payloads`` in the words of a provider's vocabulary.

        ``options``: image, settle, screenshot, inline, as the API has them. A batch that broke off is asked for again and
        not done twice. Raises Invalid, Conflict ``no_screen``, ``desktop_lost``, RateLimited ``busy``.
        """
        body: dict[str, Any] = {"call_id": call_id or uuid.uuid4().hex, **options}
        if vocabulary is None:
            body["actions"] = [dict(action) for action in actions]
        else:
            body |= {"vocabulary": vocabulary, "payloads": [dict(payload) for payload in payloads]}
        headers = {**self._headers, "Idempotency-Key": body["call_id"]}
        path = self._path("desktop/actions")
        answer = await self._http.json("POST", path, json=body, headers=headers, wait_s=wait_s)
        return DesktopActed.model_validate(answer)

    async def desktop_screenshot(self, *, format: str = "png", quality: int = 75, cursor: bool = True) -> bytes:
        """Return the screen as it is. Raises Conflict ``no_screen``, RateLimited ``busy``."""
        params = {"format": format, "quality": quality, "cursor": "true" if cursor else "false"}
        path = self._path("desktop/screenshot")
        return (await self._http.request("GET", path, params=params, headers=self._headers, wait_s=120)).content

    async def picture(self, sha256: str) -> bytes:
        """Return a picture of the run's record. Raises NotFound."""
        answer = await self._http.request("GET", self._path(f"desktop/pictures/{quote(sha256, safe='')}"))
        return answer.content

    async def release(self) -> None:
        """Give the run back for another driver."""
        await self._http.request("POST", self._path("release"), headers=self._headers)
        self._finished = True

    async def finish(self, summary: str = "", *, success: bool = True) -> None:
        """End the run; what it delivered is collected and graded."""
        body = {"status": "success" if success else "failure", "summary": summary}
        await self._http.request("POST", self._path("finish"), json=body, headers=self._headers)
        self._finished = True

    async def _over(self) -> bool:
        body = await self._http.json("GET", f"/v1/runs/{quote(self.run_id, safe='')}")
        return body["phase"] in ("collecting", "grading", "done")

    def _path(self, name: str) -> str:
        return f"/v1/runs/{quote(self.run_id, safe='')}/{name}"

    def _file(self, path: str) -> str:
        return f"{self._path('files')}/{quote(path, safe='/')}"
