"""Reads PayWorthy's postings, whatever its release calls files and fields: a mapping says it, else our own names hold.

Facts that only the client knows are hidden (``client-facts.md``); for the split of the tool agent they make the task's simulated
client. What the benchmark's own solver delivered is no reference: it comes along to be graded beside the runs.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from workstead.importers.assembly import assemble, imported
from workstead.importers.contract import Delivered, Imported, ImportOptions
from workstead.importers.drafts import Draft, key_text, slug
from workstead.importers.fields import plain
from workstead.importers.files import Contents, digest_of
from workstead.importers.mapping import FieldMap, read_mapping
from workstead.importers.payworthy.instruction import instruction_of
from workstead.importers.payworthy.posting import FIELDS, REQUIRED, Posting, own_names, posting_of
from workstead.importers.payworthy.sources import Row, read_source
from workstead.importers.payworthy.works import MAX_FACTS, facts_file, work_of
from workstead.importers.payworthy.worth import Factors, Worth, read_factors, worth_of
from workstead.importers.settings import CommonSettings, parse_settings, settings_help
from workstead.importers.untrusted import absurdities, unstorable

NAME, VERSION = "payworthy", "1"
FACTS = "client-facts.md"
LEAST_CHARS = 150
"""Of a description; with less nobody knows what is wanted."""
MESSAGES = 5
MODELS = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}(,[A-Za-z0-9][A-Za-z0-9._/-]{0,127}){0,8}$"
LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "cpus": 2.0, "memory_bytes": 4 << 30, "disk_bytes": 2 << 30}
POLICIES = {"no_deliverable": "exclude", "partial_after_limit": "grade", "clock": "wall", "missing": "exclude"}
GROUPINGS = ("category", "pay_type", "needs", "split")
NO_MERGES: dict[str, list[str]] = {}
MAX_TOLD = 20


class Settings(CommonSettings):
    mapping: Path | None = None
    """JSON or TOML file: field → column, pointer or constant; default: our own names of the fields."""
    files: Path | None = None
    """Folder that paths of deliverables and facts in a table are relative to; default: the table's own."""
    factors: Path | None = None
    """JSON file with hours per band of duration, which an hourly rate is multiplied by; it has a name of its own."""
    description_chars: int = Field(default=2000, ge=LEAST_CHARS, le=100_000)
    """Most characters of a description that are told; the release keeps as many."""
    judge: Annotated[str, Field(pattern=MODELS)] | None = None
    """Models of the catalogue that form the panel, parted by commas."""
    tool_split: str = Field(default="tool500", pattern=r"^[a-z0-9][a-z0-9_.]{0,63}$")
    """Split whose tasks have a client that can be asked."""
    client: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")
    """Model that plays the client; default: the agent's own."""
    messages: int = Field(default=MESSAGES, ge=1, le=100)
    """Most messages to the client."""

    @property
    def graders(self) -> list[dict[str, Any]]:
        if self.judge is None:
            return []
        return [{"method": "llm_panel", "settings": {"judges": [{"model": model} for model in self.judge.split(",")]}}]


class PayWorthyImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        mapping = _mapping(settings.mapping, source)
        factors = read_factors(settings.factors)
        notes: list[str] = []
        made, contents = Contents.new()
        try:
            rows = list(read_source(source, mapping.rows, settings.files, notes, contents))
            reader = Reader(source if source.is_dir() else source.parent, settings, mapping, factors, contents)
            drafts = list(reader.drafts(rows, options))
            if not any(draft.task is not None for draft in drafts):
                notes.append(f"no row became a task; the mapping has the fields: {', '.join(sorted(mapping.rules))}")
            groupings = [{"name": facet, "facet": facet, "merges": NO_MERGES} for facet in GROUPINGS]
            fields = {"policies": POLICIES, "groupings": groupings, "labels": _labels(settings, factors)}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, notes, made, reader.delivered(drafts))


class Reader:
    """Makes a draft of each posting."""

    def __init__(self, root: Path, settings: Settings, mapping: FieldMap, factors: Factors, contents: Contents) -> None:
        self._root, self._settings, self._mapping = root, settings, mapping
        self._factors, self._contents = factors, contents
        self._works: dict[int, list[dict[str, Any]]] = {}

    def drafts(self, rows: list[Row], options: ImportOptions) -> Iterator[Draft]:
        for done, row in enumerate(rows, 1):
            yield self._draft(row)
            if options.on_item is not None:
                options.on_item(done, len(rows))

    def delivered(self, drafts: list[Draft]) -> list[Delivered]:
        """Return the works whose postings became tasks."""
        works = ((draft, self._works.get(id(draft))) for draft in drafts if draft.task is not None)
        return [Delivered(draft.key, files) for draft, files in works if files]

    def _draft(self, row: Row) -> Draft:
        draft = Draft(key_text(row.name))
        if row.values is None:
            draft.quarantine("bad_item", row.name, row.trouble)
            return draft
        values, troubles = self._mapping.apply(row.values, row.name)
        for trouble in troubles[:MAX_TOLD]:
            draft.note("bad_field", trouble.where, trouble.detail)
        if isinstance(values.get("item_id"), str | int) and not isinstance(values["item_id"], bool):
            draft.key = key_text(str(values["item_id"]))
        for where in list(absurdities(values))[:MAX_TOLD]:
            draft.quarantine("not_finite", where, "Infinity, or a number of absurd length")
        try:
            self._read(row, values, draft)
        except OSError as error:
            draft.task = None
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))
        return draft

    def _read(self, row: Row, values: Mapping[str, Any], draft: Draft) -> None:
        posting = posting_of(values, draft)
        if posting is None:
            return
        if len(posting.description.strip()) < LEAST_CHARS:
            draft.quarantine("short_description", "description", f"has fewer than {LEAST_CHARS} characters")
        worth = worth_of(posting, self._factors, draft)
        facts = self._facts(row, posting, draft)
        if draft.status == "quarantined":
            return
        draft.task = self._task(posting, worth, facts, draft)
        if posting.deliverable is not None:
            wanted = self._mapping.rules["deliverable"].default != posting.deliverable
            if wanted or (row.base / posting.deliverable).exists():
                root = self._root if row.base.is_relative_to(self._root) else row.base
                self._works[id(draft)] = work_of(row.base, posting.deliverable, draft, self._contents, root)

    def _facts(self, row: Row, posting: Posting, draft: Draft) -> dict[str, Any] | None:
        """Return the hidden file with what only the client knows, where the source has it."""
        data: bytes | None = None
        if posting.facts_file is not None:
            data = facts_file(row.base, posting.facts_file, draft)
        elif posting.facts is not None:
            text = posting.facts if isinstance(posting.facts, str) else _listed(posting.facts)
            data = text.encode("utf-8", "surrogatepass")
        if data is None:
            return None
        text = data.decode("utf-8", "replace")
        if not text.strip() or len(data) > MAX_FACTS or unstorable(text) or "\ufffd" in text:
            draft.note("bad_facts", "facts", f"is no text in UTF-8 of 1 to {MAX_FACTS} bytes")
            return None
        return self._contents.make(FACTS, data)

    def _task(
        self, posting: Posting, worth: Worth | None, facts: dict[str, Any] | None, draft: Draft
    ) -> dict[str, Any]:
        s = self._settings
        limit = s.description_chars
        if len(posting.description) > limit:
            draft.note("description_cut", "description", f"{len(posting.description)} characters, {limit} are told")
        if s.judge is None:
            draft.note("grader_later", "", "no judge is named: option judge, or a grading plan of method llm_panel")
        return {
            "name": f"{NAME}/{slug(draft.key)}",
            "instruction": instruction_of(posting, posting.description[:limit]),
            "visible": [],
            "hidden": [] if facts is None else [facts],
            "environment": s.environment or "workbench",
            "limits": s.limits(LIMITS),
            "client": self._client(posting, has_facts=facts is not None, draft=draft),
            "graders": s.graders,
            "facets": _facets(posting, worth),
            "price": None if worth is None else worth.price,
            "labels": {},
        }

    def _client(self, posting: Posting, *, has_facts: bool, draft: Draft) -> dict[str, Any] | None:
        if self._settings.tool_split not in posting.split:
            return None
        if not has_facts:
            draft.note("no_facts", "facts", "a model makes them once: `workstead tasks facts make`")
        return {
            "facts": FACTS if has_facts else None,
            "max_messages": self._settings.messages,
            "model": self._settings.client,
        }


def _mapping(path: Path | None, source: Path) -> FieldMap:
    own = own_names(folders=source.is_dir())
    return own if path is None else read_mapping(path, FIELDS, REQUIRED)


def _labels(settings: Settings, factors: Factors) -> dict[str, str]:
    table = digest_of({band: plain(hours) for band, hours in factors.hours.items()})[:12]
    later = {"grader_wanted": "llm_panel"} if settings.judge is None else {}
    return {"duration_factors": f"{factors.name}:{table}", **later}


def _listed(facts: Any) -> str:
    if isinstance(facts, list) and all(isinstance(fact, str) for fact in cast("list[Any]", facts)):
        return "".join(f"- {fact}\n" for fact in cast("list[str]", facts))
    return json.dumps(facts, ensure_ascii=False, indent=1, default=str)


def _facets(posting: Posting, worth: Worth | None) -> dict[str, Any]:
    named = (
        "category",
        "category_2",
        "category_3",
        "pay_type",
        "needs",
        "text_kind",
        "duration",
        "expertise",
        "posted_at",
    )
    facets: dict[str, Any] = {name: v for name in named if (v := getattr(posting, name)) is not None}
    if posting.skills:
        facets["skills"] = posting.skills
    if posting.split:
        facets["split"] = posting.split[0] if len(posting.split) == 1 else posting.split
    if posting.posted_at is not None and posting.category is not None:
        facets["stratum"] = f"{posting.category} {posting.posted_at[:7]}"
    if worth is not None:
        dollars = worth.price["usd"]
        facets |= {"value_basis": worth.basis} | ({} if dollars is None else {"contract_value_usd": float(dollars)})
    return facets
