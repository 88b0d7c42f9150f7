"""The grader: gradings, integrity reports, operations."""

import argparse
import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from importlib import import_module
from typing import Any

from service.gateway.place import OWN, TOKEN
from service.lifecycle.contamination.scanning import KeptMarks, scan
from service.lifecycle.grade import GradeContext
from service.lifecycle.grading_context import Patience
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.judging import Judging
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.own_side import OwnWay
from service.lifecycle.vote_writer import VoteWriter
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.settings import Settings
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.finished_runs import SCANNED
from service.store.notifications import Notifications
from service.wiring.process import crash_points, database, run_process, signalled
from service.workers.evidence import evidence_queue
from service.workers.finished_runs import FinishedRuns
from service.workers.grader import grading_queue, judging_queue
from service.workers.integrity import integrity_queue
from service.workers.jobs import JobsConfig, run_jobs
from service.workers.operations import operation_queue
from service.workers.regrades import regrade_queue
from service.workers.tracing import RunTracer, Tracing


def run(_: argparse.Namespace) -> None:
    run_process(_grader)


async def _grader(settings: Settings, stack: AsyncExitStack) -> None:
    db, notifications = await database(settings, stack)
    rooms = await stack.enter_async_context(_rooms(settings))
    blobs, crash = BlobStore(settings.blob_dir), crash_points(settings)
    judging = _judging(settings, db, blobs)
    stack.push_async_callback(judging.close)
    patience = Patience(in_all_s=settings.grader.patience_s)
    context = GradeContext(db, blobs, crash=crash, rooms=rooms, judging=judging, patience=patience)
    background = OperationContext(
        db, blobs, crash, provider_host=settings.grader.provider_host, gateway=_own_way(settings), rooms=rooms
    )
    queues = [
        grading_queue(context, settings.grader.concurrency),
        judging_queue(context, settings.grader.judgings),
        integrity_queue(context.for_report),
        regrade_queue(db),
        evidence_queue(context.for_report),
        operation_queue(background, settings.grader.operations),
    ]
    _send_traces(settings, db, notifications, stack)
    scans = FinishedRuns(db, notifications, SCANNED, partial(scan, db, blobs, KeptMarks(blobs)))
    stack.push_async_callback(_stop, asyncio.create_task(scans.run(), name="contamination"))
    await run_jobs(db, notifications, queues, JobsConfig(), signalled())


def _send_traces(settings: Settings, db: Database, notifications: Notifications, stack: AsyncExitStack) -> None:
    """Have finished runs sent to the collector of traces, if there is one; else nothing of OpenTelemetry is loaded."""
    options = settings.otel
    if options.endpoint is None:
        return
    otlp: Any = import_module("service.workers.otlp")
    collector = otlp.OtlpCollector(options.endpoint, options.header_pairs(), options.service_name, options.timeout_s)
    tracer = RunTracer(db, notifications, collector, Tracing(content=options.capture_content))
    sending = asyncio.create_task(tracer.run(), name="traces")
    stack.push_async_callback(_stop, sending)


async def _stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _judging(settings: Settings, db: Database, blobs: BlobStore) -> Judging:
    turns = Turns(settings.grader.judge_calls, settings.grader.project_judge_calls)
    return Judging(db, JudgeCalls(db, _own_way(settings), turns), VoteWriter(db, blobs))


def _own_way(settings: Settings) -> OwnWay:
    return OwnWay(settings.gateway_dir / OWN, settings.gateway_dir / TOKEN)


def _rooms(settings: Settings) -> AbstractAsyncContextManager[EngineRooms | None]:
    config = RoomsConfig(settings.grader.rooms, tuple(settings.grader.code_runtimes))
    worker = settings.worker
    return open_rooms(
        settings.data_dir, settings.deployment_id(), config, docker_url=worker.docker_url, images=worker.images
    )
