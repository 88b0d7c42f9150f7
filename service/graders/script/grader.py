"""Method ``script``: the reward that the task's own verifier leaves is the score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.domain.artifacts import EntryKind
from service.domain.cleaning import clean_str
from service.domain.errors import Invalid
from service.domain.grading_plans import GradingQueue
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import parsing
from service.graders.contract import GraderFault, GradingInput
from service.graders.script.reward import Reward, Unusable, read_reward, read_tests
from service.graders.script.room import Material, Seen, run_script
from service.graders.script.settings import ScriptSettings

TAIL_CHARS = 4000
MOST_TESTS_BYTES = 64 << 20


class ScriptGrader:
    method = "script"
    version = "1"
    queue: GradingQueue = "rooms"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        parsed = parsing.parsed(ScriptSettings, settings)
        if not any(f.path.startswith(f"{parsed.tests}/") for f in task.hidden):
            raise Invalid("unknown_hidden_asset", f"the task has no hidden files below {parsed.tests!r}")
        size = sum(f.size_bytes for f in task.hidden if f.path.startswith(f"{parsed.tests}/"))
        room = min(MOST_TESTS_BYTES, parsed.memory_bytes // 32)
        if size > room:
            detail = f"the tests take {size} bytes; beside memory_bytes {parsed.memory_bytes} there is room for {room}"
            raise Invalid("tests_too_large", detail)

    async def grade(self, given: GradingInput) -> Verdict:
        settings = parsing.stored(ScriptSettings, given.settings)
        if given.rooms is None:
            raise GraderFault("grader_unavailable", "this grader process has no sandbox engine")
        material = _material(given, settings)
        runs = 1
        seen = await run_script(given.rooms, settings, material)
        if _doubtful(seen):
            runs += 1
            seen = await run_script(given.rooms, settings, material)
        return _verdict(seen, settings, {**_said(seen), "runs": runs, "environment": material.environment})


def _material(given: GradingInput, settings: ScriptSettings) -> Material:
    task, content_of = given.task, given.content_of
    if task is None or content_of is None:
        raise GraderFault("grader_unavailable", "method script needs the task's files")
    delivered = [(e.path, e.sha256) for e in given.entries if e.kind is EntryKind.FILE and e.sha256 is not None]
    taken = {path for path, _ in delivered} | {p for path, _ in delivered for p in _parents(path)}
    visible = [(f.path, f.sha256) for f in task.visible if settings.with_visible and _free(f.path, taken)]
    prefix = f"{settings.tests}/"
    tests = [(f.path.removeprefix(prefix), f.sha256) for f in task.hidden if f.path.startswith(prefix)]
    if not tests:
        raise GraderFault("hidden_missing", f"the task has no hidden files below {settings.tests!r}")
    named = settings.environment or given.extra.get("environment") or task.environment

    def placed(files: list[tuple[str, str]], cause: str) -> list[tuple[str, Path]]:
        found = [(path, content_of(sha256)) for path, sha256 in files]
        gone = next((path for path, file in found if not file.is_file()), None)
        if gone is not None:
            raise GraderFault(cause, f"the content store lost {gone!r}")
        return found

    both = placed(delivered, "deliverable_missing") + placed(visible, "visible_missing")
    return Material(str(named), both, placed(tests, "hidden_missing"))


def _free(path: str, taken: set[str]) -> bool:
    """Tell whether a visible file has its place: the deliverable has neither it nor anything above or below."""
    return path not in taken and not any(parent in taken for parent in _parents(path))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _doubtful(seen: Seen) -> bool:
    """Tell whether a busy host could look like this: the same again tells."""
    return seen.timed_out or seen.killed or (seen.reward_text is None and seen.reward_json is None)


def _verdict(seen: Seen, settings: ScriptSettings, about: dict[str, Any]) -> Verdict:
    tests = read_tests(seen.tests)
    if seen.timed_out:
        return _without("verifier_timeout", settings.on_timeout, settings, tests, about)
    if seen.out_of_memory:
        return _without("memory_limit", "zero", settings, tests, about)
    if seen.killed:
        return _without("verifier_killed", "zero", settings, tests, about)
    try:
        reward = read_reward(seen.reward_text, seen.reward_json, settings)
    except Unusable as error:
        raise GraderFault("reward_unusable", str(error)) from error
    if reward is None:
        return _without("no_reward", settings.no_reward, settings, tests, about)
    return _graded(reward, settings, tests, about)


def _graded(reward: Reward, settings: ScriptSettings, tests: list[dict[str, Any]], about: dict[str, Any]) -> Verdict:
    whole = _whole(reward.score, settings, reason="")
    detail = {**about, "rewards": reward.others}
    return Verdict(
        VerdictState.GRADED, score=reward.score, max_score=settings.max_score, criteria=[whole, *tests], detail=detail
    )


def _without(
    cause: str, meaning: str, settings: ScriptSettings, tests: list[dict[str, Any]], about: dict[str, Any]
) -> Verdict:
    if meaning == "failed":
        raise GraderFault(cause, f"exit {about['exit']}; {about['stderr'][-300:]}")
    whole = _whole(0.0, settings, reason=cause) | {"cause": cause}
    return Verdict(VerdictState.GRADED, score=0.0, max_score=settings.max_score, criteria=[whole, *tests], detail=about)


def _whole(score: float, settings: ScriptSettings, *, reason: str) -> dict[str, Any]:
    most = settings.max_score
    return {"id": settings.reward, "score": score, "max_score": most, "passed": score == most, "reason": reason}


def _said(seen: Seen) -> dict[str, Any]:
    out, err = (clean_str(s.decode(errors="replace")[-TAIL_CHARS:])[0] for s in (seen.stdout, seen.stderr))
    ended = f"signal {seen.signal}" if seen.signal is not None else seen.code
    about = {"exit": ended, "stdout": out, "stderr": err, "left_processes": seen.left}
    return {**about, "runtime": seen.runtime, "shares_user_with_tests": True}
