"""The tools that make pictures, speech and video, and that write down speech: a file in the workspace per call."""

import asyncio
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from service.domain.errors import Expected
from service.models.messages import GatewayAway
from service.sandboxes.contract import OUTPUT_DIR, WORKSPACE, ToolFailed
from service.scaffolds.loops import LoopJob
from service.scaffolds.media import asking
from service.scaffolds.media.asking import Ask, Made, MediaError, Steps, Told
from service.scaffolds.media.placing import media_fields
from service.scaffolds.tool_loop.schema import NUMBER, TEXT, schema, tool, words

VIDEO_EVERY_S = 5.0
_TO = words(TEXT, f"File to write, below {WORKSPACE}; deliverables go below {OUTPUT_DIR}.")
TOOLS = {
    "images": tool(
        "generate_image",
        "Make a picture from a description and write it to a file (png, jpeg or webp). It costs money.",
        schema(["prompt", "path"], prompt=TEXT, path=_TO, size=words(TEXT, "Width and height, e.g. 1024x1024.")),
        alone=True,
    ),
    "speech": tool(
        "generate_speech",
        "Speak a text and write the recording to a file. It costs money.",
        schema(["text", "path"], text=TEXT, path=_TO, voice=TEXT, format=words(TEXT, "wav (default), mp3, flac …")),
        alone=True,
    ),
    "video": tool(
        "generate_video",
        "Make a short video from a description and write it to a file. It takes minutes and costs money.",
        schema(["prompt", "path"], prompt=TEXT, path=_TO, seconds=NUMBER, size=TEXT),
        alone=True,
    ),
    "transcription": tool(
        "transcribe",
        "Write down what a recording in the workspace says. It costs money.",
        schema(["path"], path=words(TEXT, f"Recording below {WORKSPACE}."), language=words(TEXT, "Code such as en.")),
    ),
}
"""Media service → the tool that it makes possible."""
NAMES = {one.spec.name: service for service, one in TOOLS.items()}


async def perform(job: LoopJob, name: str, arguments: Mapping[str, Any]) -> str:
    """Return what the model is told. Raises MediaError, LauncherLost."""
    try:
        path = _below_workspace(str(arguments["path"]))
        made = await _made(job, await _steps(job, name, path, arguments))
        if name == "transcribe":
            return made.text or "(nothing is said)"
        await job.shell.write_file(path, made.data)
    except ToolFailed as error:
        raise MediaError("bad_file", error.detail or error.type) from error
    return f"wrote {WORKSPACE}/{path}: {made.text}"


async def _steps(job: LoopJob, name: str, path: str, arguments: Mapping[str, Any]) -> Steps:
    fields = dict(media_fields(job.context.settings).get(NAMES[name], {}))
    further = {key: str(value) for key, value in arguments.items() if key not in ("path", "prompt", "text")}
    if "format" in further:
        further["response_format"] = further.pop("format")
    fields |= further
    if name == "transcribe":
        audio = await job.shell.read_file(path, limit_bytes=asking.AUDIO_BYTES + 1)
        return asking.transcribe(posixpath.basename(path), audio, fields)
    makers: dict[str, Callable[[], Steps]] = {
        "generate_image": lambda: asking.image(str(arguments["prompt"]), fields),
        "generate_speech": lambda: asking.speech(str(arguments["text"]), fields),
        "generate_video": lambda: asking.video(str(arguments["prompt"]), fields, every_s=VIDEO_EVERY_S),
    }
    return makers[name]()


async def _made(job: LoopJob, steps: Steps) -> Made:
    """Do what the generator asks for until it has made something. Raises MediaError."""
    told: Told | None = None
    while True:
        try:
            step = steps.send(told)
        except StopIteration as end:
            return end.value
        if isinstance(step, Ask):
            told = await _ask(job, step)
        else:
            await asyncio.sleep(step.seconds)
            told = None


async def _ask(job: LoopJob, step: Ask) -> Told:
    assert job.services is not None
    try:
        status, body = await job.services.send(
            step.service, step.method, step.path, step.body, step.content_type, limit_bytes=step.limit
        )
    except (GatewayAway, Expected) as error:
        raise MediaError("gateway_away", f"{step.service} does not answer ({error.type})") from error
    if len(body) > step.limit:
        raise MediaError("media_too_large", f"the answer has more than {step.limit} bytes")
    return Told(status, body)


def _below_workspace(path: str) -> str:
    """Return the path relative to the workspace. Raises MediaError."""
    whole = posixpath.normpath(posixpath.join(WORKSPACE, path))
    if "\0" in path or not whole.startswith(f"{WORKSPACE}/"):
        raise MediaError("bad_path", f"files are below {WORKSPACE}: {path[:200]!r}")
    return whole.removeprefix(f"{WORKSPACE}/")
