"""Runs: submit, watch, stop, fetch, see every attempt."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from workstead._async.bundling import bundle
from workstead._async.events import stream_events
from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of, pages
from workstead.heartbeat import LEASE_HEADER
from workstead.models import Artifact, Attempt, Confirmation, Event, Grading, Integrity, Operation, Run, Ticket
from workstead.models_contamination import Contamination

LONGEST_WAIT_S = 60.0
"""Longest long poll that the server answers."""


class AsyncRuns:
    """``/v1/runs``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(
        self,
        task: str,
        agent: str,
        *,
        sample: int = 1,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Run:
        """Submit one run; ``options`` are further fields of the request (priority, max_attempts, limits, runtime).

        With a key of one's own the call may be repeated from another process. Raises NotFound, Invalid, Problem.
        """
        body = {"task": task, "agent": agent, "sample": sample, "labels": dict(labels or {}), **options}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Run.model_validate(await self._http.json("POST", "/v1/runs", json=body, headers=headers))

    async def get(self, run_id: str, *, wait_s: float = 0, until: str | None = None) -> Run:
        """Return a run; with ``wait_s`` (≤ 60) once ``until`` (ended | graded | change) holds, or after that time."""
        params: dict[str, Any] = {"wait_s": min(wait_s, LONGEST_WAIT_S)} if wait_s > 0 else {}
        if until is not None:
            params["until"] = until
        return Run.model_validate(await self._http.json("GET", _path(run_id), params=params, wait_s=wait_s))

    async def wait(self, run_id: str) -> Run:
        """Return the run once it is done."""
        run = await self.get(run_id)
        while not run.done:
            run = await self.get(run_id, wait_s=30, until="graded")
        return run

    async def list(self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None) -> AsyncIterator[Run]:
        """Yield runs, newest first, at most ``limit``; ``filters`` as the API has them (phase, agent_id, label.<name>, …)."""
        async for item in pages(self._http, "/v1/runs", filters or {}, limit):
            yield Run.model_validate(item)

    async def stop(self, run_id: str, mode: str = "collect") -> Run:
        """Stop: ``finish`` (deadline becomes now + grace), ``collect`` (kill, keep, grade), ``discard`` (kill, cancel)."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        return Run.model_validate(
            await self._http.json("POST", _path(run_id, "stop"), json={"mode": mode}, headers=headers)
        )

    async def pause(self, run_id: str, *, lease: str = "") -> Run:
        """Stop the clock of a person's run and freeze its sandbox; by its ``lease``, or with ``runs:write``. Raises Conflict."""
        return await self._clock(run_id, "pause", lease)

    async def resume(self, run_id: str, *, lease: str = "") -> Run:
        """Let a paused run go on; its deadline has moved by the pause."""
        return await self._clock(run_id, "resume", lease)

    async def _clock(self, run_id: str, what: str, lease: str) -> Run:
        return Run.model_validate(await self._http.json("POST", _path(run_id, what), headers={LEASE_HEADER: lease}))

    async def confirmations(self, run_id: str) -> AsyncIterator[Confirmation]:
        """Yield what a run had put before a person, newest first."""
        async for item in pages(self._http, _path(run_id, "confirmations"), {}, None):
            yield Confirmation.model_validate(item)

    async def confirm(
        self, run_id: str, confirmation_id: str, decision: Literal["acknowledge", "deny"]
    ) -> Confirmation:
        """Decide what the run waits for: it goes on, or ends as ``safety_denied``. May be repeated.

        Raises NotFound, Conflict (``already_decided``, ``confirmation_over``).
        """
        path = _path(run_id, "confirmations", quote(confirmation_id, safe=""))
        return Confirmation.model_validate(await self._http.json("POST", path, json={"decision": decision}))

    async def view_ticket(
        self, run_id: str, *, control: bool = False, lease: str = "", origin: str | None = None
    ) -> Ticket:
        """Make a ticket for the WebSocket (RFB) that shows the run's screen; ``control`` needs the lease of a person's run.

        Raises Conflict (``no_screen``, ``run_not_ready``, ``not_person``, ``lease_lost``).
        """
        body = {"control": control, "origin": origin}
        path = _path(run_id, "desktop/ticket")
        return Ticket.model_validate(await self._http.json("POST", path, json=body, headers={LEASE_HEADER: lease}))

    async def events(
        self, run_id: str, *, after: int = 0, until: str = "graded", types: Sequence[str] = (), detail: str = "full"
    ) -> AsyncIterator[Event]:
        """Yield events from ``after`` on, live, each once, until the run is done; reconnects by itself.

        ``types`` leaves others out, ``detail="coarse"`` output and samples; numbers stay. Raises Problem; Disconnected
        when the server stays away.
        """
        filters = _event_filters(types, detail)
        async for event in stream_events(self._http, _path(run_id, "events"), after, until, filters):
            yield event

    async def events_page(
        self, run_id: str, *, after: int = 0, limit: int = 500, types: Sequence[str] = (), detail: str = "full"
    ) -> Sequence[Event]:
        """Return up to ``limit`` stored events with ``seq`` above ``after``; fewer means that there are no more yet."""
        params = {"after": after, "limit": limit, **_event_filters(types, detail)}
        body = await self._http.json("GET", _path(run_id, "events"), params=params)
        return [Event.model_validate(item) for item in items_of(body, run_id)]

    async def attempts(self, run_id: str) -> Sequence[Attempt]:
        """Return every attempt, with its cause and evidence."""
        return [
            Attempt.model_validate(i) for i in items_of(await self._http.json("GET", _path(run_id, "attempts")), run_id)
        ]

    async def attempt(self, run_id: str, n: int) -> Attempt:
        return Attempt.model_validate(await self._http.json("GET", _path(run_id, "attempts", str(n))))

    async def log(self, run_id: str, n: int, stream: str, target: Path) -> int:
        """Write attempt ``n``'s raw ``stdout`` or ``stderr`` to the new file ``target``; return its bytes.

        Raises Conflict (``log_not_sealed``) while the attempt lives, NotFound, Problem, OSError.
        """
        path = _path(run_id, "attempts", str(n), "logs", quote(stream, safe=""))
        return await download(self._http, path, target)

    async def trajectory(self, run_id: str, attempt: int | None = None) -> dict[str, Any]:
        """Return what the agent did in ATIF 1.7: of the latest attempt, or of another one."""
        query = {} if attempt is None else {"attempt": attempt}
        found: dict[str, Any] = await self._http.json("GET", _path(run_id, "trajectory"), params=query)
        return found

    async def screenshot(self, run_id: str, *, format: str = "png", quality: int = 75, cursor: bool = True) -> bytes:
        """Return the screen of a run as it is now. Raises Conflict ``no_screen``, ``run_not_ready``."""
        params = {"format": format, "quality": quality, "cursor": "true" if cursor else "false"}
        answer = await self._http.request("GET", _path(run_id, "desktop/screenshot"), params=params, wait_s=120)
        return answer.content

    async def picture(self, run_id: str, sha256: str) -> bytes:
        """Return a picture that an event of the run names. Raises NotFound."""
        return (await self._http.request("GET", _path(run_id, f"desktop/pictures/{quote(sha256, safe='')}"))).content

    async def model_requests(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the ledger of requests to models, in order: tokens by kind, cost, waits, how each ended."""
        async for item in pages(self._http, _path(run_id, "model-requests"), {}, None):
            yield item

    async def service_calls(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the ledger of calls to gateway services, in order: status, units, cost."""
        async for item in pages(self._http, _path(run_id, "service-calls"), {}, None):
            yield item

    async def service_call_body(self, run_id: str, n: int, kind: str, target: Path) -> int:
        """Write the redacted ``request`` or ``response`` of call ``n`` to the new file ``target``; return its bytes.

        Needs the scope ``runs:debug``.
        """
        return await download(self._http, _path(run_id, "service-calls", str(n), "body", kind), target)

    async def model_request(self, run_id: str, n: int) -> dict[str, Any]:
        found: dict[str, Any] = await self._http.json("GET", _path(run_id, "model-requests", str(n)))
        return found

    async def model_request_body(self, run_id: str, n: int, kind: str, target: Path) -> int:
        """Write the redacted ``request`` or ``response`` of request ``n`` to the new file ``target``; return its bytes.

        Needs the scope ``runs:debug``.
        """
        return await download(self._http, _path(run_id, "model-requests", str(n), "body", kind), target)

    async def artifacts(self, run_id: str) -> AsyncIterator[Artifact]:
        """Yield the entries of the sealed deliverable, skipped ones too."""
        async for item in pages(self._http, _path(run_id, "artifacts"), {}, None):
            yield Artifact.model_validate(item)

    async def download(self, run_id: str, path: str, target: Path) -> int:
        """Write one artifact to the new file ``target``; return its bytes. Raises NotFound, Problem, OSError."""
        return await download(self._http, f"{_path(run_id, 'artifacts')}/{quote(path, safe='/')}", target)

    async def archive(self, run_id: str, target: Path) -> int:
        """Write all files of the deliverable as one zip to the new file ``target``; return its bytes."""
        return await download(self._http, _path(run_id, "archive.zip"), target)

    async def integrity(self, run_id: str) -> Integrity:
        """Return whether each delivered file opens as what it claims; ``state`` says whether that is known yet."""
        return Integrity.model_validate(await self._http.json("GET", _path(run_id, "integrity")))

    async def contamination(self, run_id: str) -> Contamination:
        """Return whether the run met its own answer key; ``state`` says whether anybody has looked yet."""
        return Contamination.model_validate(await self._http.json("GET", _path(run_id, "contamination")))

    async def make_film(self, run_id: str, *, fps: int = 2, captions: bool = True) -> Operation:
        """Have a film made of the pictures in an ended run's record; wait with ``client.operations.wait``.

        ``fps``: stills a second, one for each batch of actions. Raises Conflict ``run_not_ended``, ``no_pictures``.
        """
        body = {"fps": fps, "captions": captions}
        return Operation.model_validate(await self._http.json("POST", _path(run_id, "film"), json=body))

    async def film(self, run_id: str, target: Path) -> int:
        """Write the film that was made last (mp4) to the new file ``target``; return its bytes. Raises NotFound, OSError."""
        return await download(self._http, _path(run_id, "film"), target)

    async def make_integrity(self, run_id: str, *, idempotency_key: str | None = None) -> Integrity:
        """Have an integrity report made that is unavailable. Raises Conflict where nothing was sealed."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Integrity.model_validate(await self._http.json("POST", _path(run_id, "integrity"), headers=headers))

    async def gradings(self, run_id: str) -> Sequence[Grading]:
        body = await self._http.json("GET", _path(run_id, "gradings"))
        return [Grading.model_validate(item) for item in items_of(body, run_id)]

    async def regrade(
        self,
        run_id: str,
        *,
        round: int | None = None,
        plan: str | None = None,
        primary: bool = False,
        idempotency_key: str | None = None,
    ) -> Sequence[Grading]:
        """Grade the sealed deliverable once more, without another run; ``round`` is the next free one by default.

        ``plan``: another grading plan than the run's; ``primary``: it becomes the run's own, together with its verdict.
        """
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        said: dict[str, Any] = (
            {"round": round} | ({"plan": plan} if plan else {}) | ({"primary": True} if primary else {})
        )
        body = await self._http.json("POST", _path(run_id, "gradings"), json=said, headers=headers)
        return [Grading.model_validate(item) for item in items_of(body, run_id)]

    async def rerun(
        self,
        run_id: str,
        *,
        mode: str = "fresh",
        overrides: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Submit the run again as a new one; ``mode`` ``replay`` answers it from the recording, with no provider.

        ``overrides``: model, settings, limits, budget, network, labels, priority, max_attempts, keep_on_failure_s.
        Raises NotFound, Invalid (``no_recording``), Conflict (``run_not_ended``), Problem.
        """
        body = {"mode": mode, "overrides": dict(overrides or {})}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Run.model_validate(await self._http.json("POST", f"{_path(run_id)}/rerun", json=body, headers=headers))

    async def bundle(self, run_id: str, target: Path) -> Sequence[str]:
        """Write everything of the run but its deliverable's bytes into the new zip ``target``; return the names in it.

        Raises NotFound, Problem, Disconnected, OSError.
        """
        return await bundle(self._http, run_id, target)

    async def delete(self, run_id: str) -> None:
        """Delete a run that has ended, with its events and artifacts. Raises Conflict while it lives."""
        await self._http.request("DELETE", _path(run_id))


def _event_filters(types: Sequence[str], detail: str) -> dict[str, str]:
    filters = {"types": ",".join(types)} if types else {}
    return filters if detail == "full" else {**filters, "detail": detail}


def _path(run_id: str, *rest: str) -> str:
    return "/".join(["/v1/runs", quote(run_id, safe=""), *rest])
