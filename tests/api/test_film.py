"""Films of records: asked for once, made in a room of the test's making, downloaded, and gone with their run."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from service.desktop.film import making
from service.desktop.performed import Encoded, Performed
from service.domain.desktop import ActionType, DesktopAction
from service.domain.events import EventType, NewEvent
from service.domain.limits import KIB, Limits
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.desktop_record import desktop_payload, keep_pictures, refer
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.sandboxes.contract import ExecResult, FileSource, LauncherLost, Sandbox
from service.store import attempts, blob_refs
from service.store.events import EventLog
from tests.api.helpers import Tenant

PNG = b"\x89PNG\r\n\x1a\n"


class Room:
    """Counts stills as its program would, and has a film of these bytes."""

    def __init__(self, film: bytes, **said: Any) -> None:
        self.film, self.said = film, said
        self.files: list[FileSource] = []
        self.asked: list[Any] = []

    async def write_files(self, files: Sequence[FileSource]) -> None:
        self.files += files

    async def exec(self, argv: Sequence[str], *, stdin: bytes = b"", limit_bytes: int = 0, **_: Any) -> ExecResult:
        match argv:
            case [*_, "piece", _]:
                wanted = json.loads(stdin)
                self.asked.append(wanted)
                return self._answer({"shown": len(wanted["captions"]), "skipped": 0} | self.said)
            case [*_, "join", _, _]:
                return self._answer({"bytes": len(self.film)} | self.said)
            case _:
                block = int(next(a for a in argv if a.startswith("bs=")).removeprefix("bs="))
                skip = int(next(a for a in argv if a.startswith("skip=")).removeprefix("skip="))
                return ExecResult(0, None, self.film[skip * block : (skip + 1) * block][:limit_bytes], b"")

    def _answer(self, said: dict[str, Any]) -> ExecResult:
        return ExecResult(said.get("code", 0), None, json.dumps(said).encode(), b"")


class Rooms:
    def __init__(self, *rooms: Room | Exception) -> None:
        self.rooms = list(rooms)

    @asynccontextmanager
    async def open(
        self,
        environment: str,
        limits: Limits,
        *,
        in_memory: bool = False,
        runs_code: bool = False,
        verifier: bool = False,
    ) -> AsyncGenerator[Sandbox]:
        assert (environment, in_memory, runs_code) == ("documents", False, False)
        room = self.rooms.pop(0)
        if isinstance(room, Exception):
            raise room
        yield cast("Sandbox", room)


async def _recorded(tenant: Tenant, batches: int = 3, *, text: str = "") -> str:
    """A run with so many batches on its screen; the first has a picture before it."""
    run_id = (await tenant.run())["id"]
    attempt = await tenant.start(run_id)
    log = EventLog(tenant.state.blobs)
    for n in range(batches):
        before = Encoded("png", 1280, 800, PNG + b"before") if n == 0 else None
        performed = Performed(before=before, shot=Encoded("png", 1280, 800, PNG + b"%d" % n))
        kept = await keep_pictures(tenant.state.blobs, performed)
        actions = [DesktopAction(type=ActionType.TYPE, text=text or f"step {n}")]
        payload = desktop_payload(f"call_{n}", "loop", actions, performed, kept)
        event = NewEvent(EventType.DESKTOP_ACTION, payload, "loop", n, datetime.now(UTC))
        async with tenant.state.db.transaction() as tx:
            await log.append(tx, run_id, attempt.n, attempt.fence, [event])
            await refer(tx, run_id, kept)
    return run_id


async def _perform(tenant: Tenant, operation: Any, *rooms: Room | Exception) -> Any:
    ctx = OperationContext(tenant.state.db, tenant.state.blobs, first_pause_s=0.01, rooms=Rooms(*rooms))
    await perform(ctx, operation["id"])
    return await tenant.get(f"/v1/operations/{operation['id']}")


async def test_a_film_is_made_once_and_downloaded(tenant: Tenant) -> None:
    run_id = await _recorded(tenant)
    path = f"/v1/runs/{run_id}/film"
    assert (await tenant.post(path, {}, 409))["type"].endswith(":run_not_ended")
    await tenant.finish(run_id)
    assert (await tenant.get(path, 404))["type"].endswith(":film_missing")
    begun = await tenant.post(path, {}, 202)
    assert (begun["kind"], begun["unit"]) == ("film", "stills")
    assert (await tenant.post(path, {}, 202))["id"] == begun["id"]
    room = Room(bytes(range(256)) * 40_000)
    ended = await _perform(tenant, begun, room)
    assert ended["state"] == "succeeded", ended
    assert ended["result"] | {"sha256": ""} == {
        "run_id": run_id, "sha256": "", "size_bytes": len(room.film), "width": 1280, "height": 824,
        "stills": 4, "skipped": 0, "left_out": 0, "seconds": 2.0,
    }  # fmt: skip
    shown = [f.file for f in room.files if f.file is not None]
    assert [path.read_bytes()[len(PNG) :] for path in shown] == [b"before", b"0", b"1", b"2"]
    [piece] = room.asked
    assert [caption.rpartition("   ")[2] for caption in piece["captions"]] == [
        "",
        *(f"type “step {n}”" for n in range(3)),
    ]
    assert (await tenant.post(path, {}, 202))["id"] == begun["id"]
    answer = await tenant.client.get(path, headers={"Range": "bytes=0-9"})
    assert (answer.status_code, answer.content) == (206, room.film[:10])
    whole = await tenant.client.get(path)
    assert (whole.content, whole.headers["content-type"]) == (room.film, "video/mp4")
    assert whole.headers["etag"] == f'"{ended["result"]["sha256"]}"'


async def test_another_film_takes_its_place_and_goes_with_the_run(tenant: Tenant) -> None:
    run_id = await _recorded(tenant)
    async with tenant.state.db.reading() as tx:
        attempt = await attempts.get(tx, run_id, 1)
    assert attempt is not None
    await tenant.seal(attempt, [])
    await tenant.finish(run_id)
    path = f"/v1/runs/{run_id}/film"
    first = await _perform(tenant, await tenant.post(path, {}, 202), Room(b"one"))
    bare = await tenant.post(path, {"captions": False, "fps": 5}, 202)
    room = Room(b"two")
    await _perform(tenant, bare, room)
    assert room.asked[0]["captions"] == [""] * 4
    assert (room.asked[0]["height"], room.asked[0]["fps"]) == (800, 5)
    assert (await tenant.client.get(path)).content == b"two"
    again = await tenant.post(path, {}, 202)
    assert again["id"] != first["id"]  # the first film is no longer kept
    assert (await tenant.client.delete(f"/v1/runs/{run_id}")).status_code == 204
    async with tenant.state.db.reading() as tx:
        assert await blob_refs.one_owned(tx, blob_refs.FILM, run_id) is None
    lost = await _perform(tenant, again, Room(b"three"))
    assert (lost["state"], lost["problem"]["type"]) == ("failed", "urn:workstead:problem:run_not_found")


async def test_a_record_without_pictures_has_no_film(tenant: Tenant) -> None:
    run_id = (await tenant.run())["id"]
    await tenant.finish(run_id)
    assert (await tenant.post(f"/v1/runs/{run_id}/film", {}, 409))["type"].endswith(":no_pictures")
    for body in ({"fps": 0}, {"fps": 11}, {"speed": 2}):
        await tenant.post(f"/v1/runs/{run_id}/film", body, 422)


async def test_what_was_done_is_read_also_where_an_event_was_too_large_for_its_row(tenant: Tenant) -> None:
    run_id = await _recorded(tenant, 2, text="long " * (4 * KIB))
    await tenant.finish(run_id)
    room = Room(b"film")
    await _perform(tenant, await tenant.post(f"/v1/runs/{run_id}/film", {}, 202), room)
    assert [caption.partition("type ")[2][:6] for caption in room.asked[0]["captions"]] == ["", "“long ", "“long "]


async def test_long_records_are_thinned_out_and_told_in_pieces(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.lifecycle.operations.film.MOST_STILLS", 3)
    monkeypatch.setattr(making, "BATCH_STILLS", 2)
    run_id = await _recorded(tenant, 5)
    await tenant.finish(run_id)
    room = Room(b"film")
    ended = await _perform(tenant, await tenant.post(f"/v1/runs/{run_id}/film", {}, 202), room)
    assert [len(asked["captions"]) for asked in room.asked] == [2, 1]
    assert (ended["result"]["stills"], ended["result"]["left_out"]) == (3, 3)
    assert (ended["done"], ended["total"]) == (3, 3)


@pytest.mark.parametrize(
    ("rooms", "type"),
    [
        ([LauncherLost("gone")] * 3, "room_failed"),
        ([Room(b"x", code=1) for _ in range(3)], "room_failed"),
        ([Room(b"x", shown=10**9) for _ in range(3)], "room_failed"),
        ([Room(b"x", shown=True) for _ in range(3)], "room_failed"),
        ([Room(b"x", bytes=9) for _ in range(3)], "room_failed"),
        ([Room(b"x", shown=0)], "no_pictures"),
    ],
)
async def test_a_room_that_fails_or_lies_is_a_failed_operation(
    tenant: Tenant, rooms: list[Room | Exception], type: str
) -> None:
    run_id = await _recorded(tenant, 1)
    await tenant.finish(run_id)
    ended = await _perform(tenant, await tenant.post(f"/v1/runs/{run_id}/film", {}, 202), *rooms)
    assert (ended["state"], ended["problem"]["type"]) == ("failed", f"urn:workstead:problem:{type}")
    await tenant.get(f"/v1/runs/{run_id}/film", 404)


class Died(BaseException):
    """The process is gone."""


class DiesWhenMade(CrashPoints):
    def reach(self, name: str) -> None:
        if name == "film.made":
            raise Died


async def test_a_film_whose_maker_died_is_made_again(tenant: Tenant) -> None:
    run_id = await _recorded(tenant, 1)
    await tenant.finish(run_id)
    begun = await tenant.post(f"/v1/runs/{run_id}/film", {}, 202)
    ctx = OperationContext(tenant.state.db, tenant.state.blobs, DiesWhenMade(), rooms=Rooms(Room(b"film")))
    with pytest.raises(Died):
        await perform(ctx, begun["id"])
    await tenant.get(f"/v1/runs/{run_id}/film", 404)
    assert (await _perform(tenant, begun, Room(b"film")))["state"] == "succeeded"
    assert (await tenant.client.get(f"/v1/runs/{run_id}/film")).content == b"film"


async def test_a_film_that_nobody_wants_any_more_is_left(tenant: Tenant) -> None:
    run_id = await _recorded(tenant, 1)
    await tenant.finish(run_id)
    begun = await tenant.post(f"/v1/runs/{run_id}/film", {}, 202)

    class Waiting(Room):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            await tenant.post(f"/v1/operations/{begun['id']}/cancel", None, 200)
            return await super().exec(argv, **more)

    room = Waiting(b"film")
    assert (await _perform(tenant, begun, room))["state"] == "cancelled"
    assert len(room.asked) == 1
    await tenant.get(f"/v1/runs/{run_id}/film", 404)


async def test_without_an_engine_there_is_none(tenant: Tenant) -> None:
    run_id = await _recorded(tenant, 1)
    await tenant.finish(run_id)
    begun = await tenant.post(f"/v1/runs/{run_id}/film", {}, 202)
    await perform(OperationContext(tenant.state.db, tenant.state.blobs, first_pause_s=0.01), begun["id"])
    ended = await tenant.get(f"/v1/operations/{begun['id']}")
    assert ended["problem"]["type"] == "urn:workstead:problem:no_rooms"
