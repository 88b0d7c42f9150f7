"""What is asked of media services, what their answers must be, and which files bring ``ws-media``."""

import base64
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.scaffolds.contract import Plan
from service.scaffolds.environment import base_environment
from service.scaffolds.media import asking
from service.scaffolds.media.asking import Ask, Made, MediaError, Pause, Steps, Told
from service.scaffolds.media.placing import equipped
from tests.unit.scaffolds.build import CONTEXT

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
PICTURE = {"data": [{"b64_json": base64.b64encode(PNG).decode()}]}


def answered(steps: Steps, *answers: object, status: int = 200) -> tuple[Made, list[Ask | Pause]]:
    """Give the answers one after the other; return what was made and what was asked for."""
    waiting, asked = list(answers), list[Ask | Pause]()
    told: Told | None = None
    while True:
        try:
            step = steps.send(told)
        except StopIteration as end:
            return end.value, asked
        asked.append(step)
        told = None
        if isinstance(step, Ask):
            body = waiting.pop(0)
            told = Told(status, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_a_picture() -> None:
    made, asked = answered(asking.image("a barn", {"size": "8x8", "n": 9}), PICTURE)
    assert (made.data, made.kind) == (PNG, "png")
    (ask,) = asked
    assert isinstance(ask, Ask)
    assert (ask.service, ask.method, ask.path) == ("images", "POST", "images/generations")
    assert json.loads(ask.body) == {"prompt": "a barn", "size": "8x8", "n": 1}


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({"data": [{"url": "https://elsewhere.example/x.png"}]}, "media_by_link"),
        ({"data": [PNG.hex()]}, "media_by_link"),
        ({"data": {}}, "media_by_link"),
        ({"data": [{"b64_json": "%%%"}]}, "media_unreadable"),
        ({"data": [{"b64_json": base64.b64encode(b"<html>log in</html>").decode()}]}, "media_unreadable"),
        (b"[]", "media_unreadable"),
        (b"[" * 100_000, "media_unreadable"),
        (b"", "service_refused"),
    ],
)
def test_what_is_no_picture_is_not_written(answer: object, word: str) -> None:
    with pytest.raises(MediaError) as wrong:
        answered(asking.image("a barn", {}), answer)
    assert wrong.value.type == word


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"code": "moderation_blocked", "message": "no"}}, "status 400: moderation_blocked: no"),
        ({"error": "no"}, 'status 400: {"error": "no"}'),
        (b"\xff", "status 400: \ufffd"),
    ],
)
def test_a_refusal_is_told(body: object, said: str) -> None:
    with pytest.raises(MediaError, match="status 400") as wrong:
        answered(asking.image("a barn", {}), body, status=400)
    assert str(wrong.value) == said


def test_a_job_that_fails_or_has_a_strange_name_ends() -> None:
    film = b"\0\0\0\x18ftypmp42" + b"0" * 20
    states = [{"id": "v_1", "status": "queued"}, {"status": "in_progress"}, {"status": "completed"}, film]
    made, asked = answered(asking.video("waves", {}, every_s=2), *states)
    assert (made.kind, len([a for a in asked if isinstance(a, Pause)])) == ("mp4", 2)
    for states, word in (
        ([{"id": "../x", "status": "queued"}], "media_unreadable"),
        ([{"id": "v_1", "status": "failed", "error": {"message": "too dark"}}], "media_failed"),
        ([{"id": "v_1", "status": "queued"}, *[{"status": "queued"}] * 1000], "media_timeout"),
    ):
        with pytest.raises(MediaError) as wrong:
            answered(asking.video("waves", {}, every_s=60), *states)
        assert wrong.value.type == word


def test_no_value_begins_a_part_of_its_own() -> None:
    steps = asking.transcribe('a"\r\nb.wav', b"RIFF", {"model": 'x"\r\n\r\n--', "language": "pt-BR"})
    made, (ask,) = answered(steps, {"text": "hello"})
    assert made.text == "hello"
    assert isinstance(ask, Ask)
    head = ask.body[: ask.body.index(b"RIFF")].decode()
    assert 'filename="a___b.wav"' in head
    assert head.count("content-disposition") == 4
    assert 'name="model"\r\n\r\nx" --\r\n' in head


@pytest.mark.parametrize(
    ("audio", "fields"), [(b"", {}), (b"x" * (asking.AUDIO_BYTES + 1), {}), (b"x", {"language": "d"})]
)
def test_recordings_are_bounded(audio: bytes, fields: dict[str, Any]) -> None:
    with pytest.raises(MediaError):
        answered(asking.transcribe("a", audio, fields), {"text": ""})


def settings(**fields: Any) -> AgentSettings:
    return AgentSettings.model_validate(fields)


def test_ws_media_comes_with_media_services_only() -> None:
    plan = Plan(["agent"])
    assert equipped(plan, CONTEXT) is plan
    assert "PATH" in base_environment(CONTEXT)
    assert "WORKSTEAD_MEDIA" not in base_environment(CONTEXT)
    context = replace(CONTEXT, settings=settings(services=["images"], media={"images": {"model": "painter-1"}}))
    assert equipped(Plan([]), context).written == ()
    assert {w.path: w.mode for w in equipped(plan, context).written}[".home/bin/ws-media"] == 0o755
    env = base_environment(context)
    assert env["PATH"].startswith("/workspace/.home/bin:/opt/kit/bin:")
    assert json.loads(env["WORKSTEAD_MEDIA"]) == {"images": {"model": "painter-1"}}


@pytest.mark.parametrize(
    "given", [[], {"sculpture": {}}, {"images": 1}, {"images": {"a": ["b"]}}, {"images": {"a": "b" * 501}}]
)
def test_settings_of_media_are_checked(given: object) -> None:
    with pytest.raises(Invalid, match=r"settings\.media"):
        base_environment(replace(CONTEXT, settings=settings(media=given)))


@pytest.mark.longer
def test_the_command_runs_from_its_files_alone(tmp_path: Path) -> None:
    context = replace(CONTEXT, settings=settings(services=["speech"]))
    for file in equipped(Plan(["agent"]), context).written:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode)
    python = str(Path(sys.executable).parent)
    env = {"PATH": f"{tmp_path}/.home/bin:{python}:/usr/bin:/bin", "WORKSTEAD_RUN_TOKEN": "wsr_x"}

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["ws-media", *argv], env=env, cwd=tmp_path, text=True, capture_output=True, check=False)

    assert "usage: ws-media" in run("--help").stdout
    nothing = run("transcribe", "not-there.wav")
    assert (nothing.returncode, nothing.stderr) == (2, "ws-media: bad_file: not-there.wav: No such file or directory\n")
    folder = run("transcribe", ".")
    assert folder.returncode != 0
    assert "Traceback" not in folder.stderr
    empty = run("speech", " ", "-o", "x.wav")
    assert (empty.returncode, empty.stderr) == (1, "ws-media: bad_text: text: 1 to 100000 characters\n")
