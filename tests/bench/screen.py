"""``screen``: an action and a picture through the session, against what a command line does in the same container.

The baseline needs xdotool and scrot, for which the image itself has no use: both run on an image that is made of it here.
"""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sandbox_images.build_host import this_machine
from sandbox_images.engine import Engine
from service.desktop.environment import SCREEN_ENVIRONMENT
from service.desktop.session import DesktopSession
from service.domain.agents import Surface
from service.domain.desktop import HEIGHT, WIDTH, ActionType, Batch, DesktopAction, Settle, Shot, Size
from service.domain.limits import GIB, Limits
from service.sandboxes.contract import HOME, SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.sandbox import DockerSandbox
from tests.bench.report import Result, median_ratio

GOAL = 0.15
TAG = "wsbench-screen:local"
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": HOME, **SCREEN_ENVIRONMENT}
Format = Literal["png", "webp", "jpeg"]
FORMATS: tuple[Format, ...] = ("png", "webp", "jpeg")
_DOCKERFILE = b"""\
ARG PARENT
FROM ${PARENT}
USER root
RUN apt-get update && apt-get install -y --no-install-recommends xdotool scrot
USER 10001:10001
"""
_FULL = Settle(quiet_s=1.5, cap_s=30)


def screen(pairs: int = 20) -> Result:
    ours, theirs, size = asyncio.run(_measure(pairs))
    baseline = statistics.median(theirs)
    detail = {name: {"s": statistics.median(ours[name]), "ratio": median_ratio(ours[name], theirs)} for name in FORMATS}
    # The lossless picture that models are sent.
    ratio = median_ratio(ours["png"], theirs)
    return Result(
        "screen",
        statistics.median(ours["png"]),
        "s",
        baseline,
        ratio,
        f"≤ {GOAL}",
        {"pairs": pairs, "bytes": size, **detail},
    )


async def _measure(pairs: int) -> tuple[dict[Format, list[float]], list[float], dict[str, int]]:
    ours: dict[Format, list[float]] = {name: [] for name in FORMATS}
    theirs: list[float] = []
    size: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as directory:
        backend = DockerBackend(Path(directory), "wsbench-screen", runtimes=["runc"])
        try:
            image = await asyncio.to_thread(_image, await backend.resolve_image("desktop"))
            spec = SandboxSpec(image, limits=Limits(disk_bytes=GIB, cpus=2), confinement="desktop")
            sandbox = await backend.make(spec)
            session = await DesktopSession.open(
                sandbox, env=ENV, surface=Surface.DESKTOP, size=Size(width=WIDTH, height=HEIGHT)
            )
            await _fill(session)
            for turn in range(pairs):
                place = 300 + 7 * turn
                for name in FORMATS:
                    took, size[name] = await _once(session, name, place)
                    ours[name].append(took)
                theirs.append(await asyncio.to_thread(_command_line, sandbox, place))
            await session.close()
            await backend.remove(sandbox.id)
        finally:
            await backend.close()
    return ours, theirs, size


async def _fill(session: DesktopSession) -> None:
    """Have something to see: a page with text."""
    address = DesktopAction(type=ActionType.NAVIGATE, text="chrome://version")
    done = await session.perform(Batch(actions=[address], settle=_FULL))
    if done.error or done.results[0].error:
        raise RuntimeError(f"no page: {done}")


async def _once(session: DesktopSession, name: Format, place: int) -> tuple[float, int]:
    move = DesktopAction(type=ActionType.MOVE, x=place, y=place)
    started = time.perf_counter()
    done = await session.perform(Batch(actions=[move], shot=Shot(format=name)))
    took = time.perf_counter() - started
    if done.shot is None:
        raise RuntimeError(f"no picture: {done}")
    return took, len(done.shot.data)


def _command_line(sandbox: DockerSandbox, place: int) -> float:
    line = f"xdotool mousemove {place} {place} && scrot -o -p /tmp/shot.png && cat /tmp/shot.png"
    started = time.perf_counter()
    shot = _exec(sandbox.handle.container, ["sh", "-c", line])
    took = time.perf_counter() - started
    if not shot.startswith(b"\x89PNG"):
        raise RuntimeError("scrot gave no picture")
    return took


def _exec(container: str, argv: Sequence[str]) -> bytes:
    display = f"--env=DISPLAY={SCREEN_ENVIRONMENT['DISPLAY']}"
    return subprocess.run(["docker", "exec", display, container, *argv], stdout=subprocess.PIPE, check=True).stdout


def _image(parent: str) -> str:
    engine = Engine()
    try:
        context = {"Dockerfile": (_DOCKERFILE, 0o644)}
        return engine.build(context, TAG, {"PARENT": parent, **this_machine().proxies}, {})
    finally:
        engine.close()
