"""Ask once, go on while the answer is cut at its length, read the files, put them into the sandbox."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.domain.agents import AgentSettings
from service.domain.events import EventType
from service.models.messages import Answer, Ask, ModelRefused, Turn, UserTurn
from service.sandboxes.contract import ToolFailed
from service.scaffolds import efforts
from service.scaffolds.contract import ModelChoice, Translated
from service.scaffolds.efforts import Effort
from service.scaffolds.loops import LoopEnd, LoopJob, silent
from service.scaffolds.prompts import prompt_for
from service.scaffolds.single_response import materialise
from service.scaffolds.single_response.parsing import Found, parse

EFFORTS = ("minimal", "none", "low", "medium", "high", "xhigh", "max")
DEFAULT_CAP = 64_000
"""Output tokens of all calls together."""
MAX_CALLS = 32
CHARS_PER_TOKEN = 3.5
LEAST_TOKENS = 256
"""With fewer left, no further call is made."""
NOTE = "note_to_client"
VERSION = 1
SYSTEM = """\
You do a piece of paid work in a single answer, without tools, without files that you can open, and without anybody to ask.

Deliver named files as text: documents as Markdown, tables as CSV or JSON, programs as code, drawings as SVG. A file named \
.docx, .pdf, .xlsx or .png is built from the text that you give for it (Markdown for documents, CSV or JSON for tables, SVG \
for pictures). Write each file exactly like this, complete, without commentary inside:

<file name="report.md">
the whole content
</file>

Then write to the client what the files need to be said with them (assumptions, what you could not do), and nothing else:

<note>
a few sentences
</note>

Do not claim what you did not do.
"""
CONTINUE = (
    "Your answer was cut off at the length limit. Go on exactly where it stopped: no repetition, no introduction."
)


def effort(settings: AgentSettings, model: ModelChoice) -> Effort:
    """Raises Invalid ``unsupported_effort``."""
    return efforts.resolve(settings, model, EFFORTS)


def cap(settings: AgentSettings) -> int:
    return int(settings.further.get("max_total_tokens") or DEFAULT_CAP)


@dataclass(slots=True)
class _Joined:
    """The answer so far."""

    text: str = ""
    n_calls: int = 0
    tokens: int = 0
    truncated: bool = False
    """The answer was not finished when the last allowed token was used."""
    refused: str = ""
    turns: list[Turn] = field(default_factory=list[Turn])

    def facts(self) -> dict[str, Any]:
        return {"n_calls": self.n_calls, "truncated": self.truncated, "output_tokens": self.tokens}


class SingleResponseLoop:
    """See :class:`service.scaffolds.loops.Loop`."""

    async def run(self, job: LoopJob) -> LoopEnd:
        joined = _Joined(turns=[UserTurn(text=prompt_for(job.task, job.context).text)])
        try:
            await _answer(job, joined)
        except ModelRefused as error:
            if not joined.text:  # what came before is an answer, if only a piece of one
                status = "limit" if error.type == "budget_exhausted" else "error"
                return LoopEnd(status, error.type, detail={"message": error.detail[:2000]})
            joined.truncated = True
        if joined.refused:
            return LoopEnd("error", "refused", joined.text[:2000], {**joined.facts(), "stop": joined.refused})
        found = parse(joined.text)
        written = await _deliver(job, found)
        return _end(joined, found, written)


async def _answer(job: LoopJob, joined: _Joined) -> None:
    model = job.context.model
    assert model is not None  # checked by plan
    settings, most = job.context.settings, cap(job.context.settings)
    own = settings.system_prompt
    used = effort(settings, model).used
    while joined.n_calls < MAX_CALLS:
        left = most - joined.tokens
        per_call = min([left, *(n for n in (settings.max_output_tokens, model.max_output_tokens) if n)])
        ask = Ask(f"{SYSTEM}\n{own}" if own else SYSTEM, list(joined.turns), (), per_call, settings.temperature, used)
        answer = await _call(job, ask, joined.n_calls + 1)
        joined.n_calls += 1
        joined.text += answer.text
        joined.tokens += _tokens(answer)
        joined.refused = answer.stop_detail or "refusal" if answer.stop == "refusal" else ""
        joined.truncated = answer.stop == "length"
        if not joined.truncated or most - joined.tokens < LEAST_TOKENS or not answer.text:
            return
        joined.turns += [answer, UserTurn(text=CONTINUE)]


async def _call(job: LoopJob, ask: Ask, n: int) -> Answer:
    async def act() -> dict[str, Any]:
        return (await job.model.ask(ask)).model_dump(mode="json")

    return Answer.model_validate(await job.journal.step("model", f"call-{n}", act, _told))


def _tokens(answer: Answer) -> int:
    if answer.usage is not None and answer.usage.output_tokens:
        return answer.usage.output_tokens
    return int(len(answer.text) / CHARS_PER_TOKEN) + 1


async def _deliver(job: LoopJob, found: Found) -> list[dict[str, Any]]:
    """Write the files; return (name, bytes, how) of each. A repeat writes the same again."""

    async def act() -> dict[str, Any]:
        written: list[dict[str, Any]] = []
        for path, text in found.files.items():
            written.append(await _write(job, path, text, len(written)))
        return {"written": written, "refused": found.refused, "form": found.form}

    value = await job.journal.step("files", "written", act, _told_files if found.files or found.refused else silent)
    written: list[dict[str, Any]] = value["written"]
    return written


async def _write(job: LoopJob, path: str, text: str, n: int) -> dict[str, Any]:
    data = text.encode(errors="replace")
    made = {"name": path, "bytes": len(data)}
    try:
        if materialise.wanted(path) and not materialise.is_already(path, text):
            return {**made, "built": await materialise.build(job.shell, path, data, f"build-{n}")}
        await job.shell.write_file(f"output/{path}", data)
    except ToolFailed as error:
        return {**made, "failed": error.type}
    return made


def _end(joined: _Joined, found: Found, written: Sequence[Mapping[str, Any]]) -> LoopEnd:
    facts = {
        **joined.facts(),
        "form": found.form,
        "files": [w["name"] for w in written if "failed" not in w],
        "refused_names": [name for name, _ in found.refused],
        "unfinished": found.unfinished,
    }
    artefacts = {NOTE: found.note} if found.note else {}
    if not facts["files"]:
        return LoopEnd("error", "no_files", found.note[:2000], facts, artefacts)
    return LoopEnd("success", "truncated" if joined.truncated else "done", found.note[:2000], facts, artefacts)


def _told(value: dict[str, Any]) -> Sequence[Translated]:
    told: list[Translated] = []
    if value["thinking"].strip():
        told.append(Translated(EventType.AGENT_THINKING, {"text": value["thinking"]}))
    told.append(Translated(EventType.AGENT_MESSAGE, {"text": value["text"], "stop": value["stop"]}))
    return told


def _told_files(value: dict[str, Any]) -> Sequence[Translated]:
    failed = [w["name"] for w in value["written"] if "failed" in w or w.get("built") == "text"]
    notes = [f"refused name {json.dumps(name)}: {why}" for name, why in value["refused"]]
    notes += [f"{name} could not be built and is not, or only as text, delivered" for name in failed]
    return [Translated(EventType.AGENT_WARNING, {"text": note}) for note in notes[:100]]
