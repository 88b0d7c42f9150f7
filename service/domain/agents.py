"""Scaffolds as data and agents, the rows of every table: immutable, known by digest."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.domain.desktop import Screen
from service.domain.errors import Invalid
from service.domain.limits import Limits
from service.domain.mappings import EndRule, MappingRule
from service.domain.models import Dialect
from service.domain.paths import RelativePath
from service.domain.policies import ProviderTools
from service.domain.tasks import FileRef, Name, Sha256, Strict, canonical_digest

Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+-]{0,63}$")]


class Driver(StrEnum):
    """Who drives: NEEDS C9."""

    KIT = "kit"
    """A program inside the sandbox."""
    LOOP = "loop"
    """Ours, in the worker."""
    REMOTE = "remote"
    """A client over the API."""
    PERSON = "person"
    EXTERNAL = "external"
    """Upload only: no sandbox is driven."""


class Surface(StrEnum):
    """What a driver drives: NEEDS C9."""

    SHELL = "shell"
    DESKTOP = "desktop"
    BROWSER = "browser"
    """A browser alone, over the whole screen."""
    NONE = "none"


SCREENS = frozenset({Surface.DESKTOP, Surface.BROWSER})
"""Surfaces with a screen."""


class AgentSettings(BaseModel):
    """The settings that mean the same for every scaffold with a model; a scaffold may take further keys."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    effort: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "default"
    """``default`` (nothing is sent), ``max`` (the most that model and scaffold take, resolved and recorded), or a name."""
    max_turns: int | None = Field(default=None, ge=1, le=100_000)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, ge=1)
    system_prompt: str | None = Field(default=None, max_length=100_000)
    """Added to the scaffold's own."""
    prompt_template: Sha256 | None = None
    """Blob of a template with the placeholders of ``scaffolds.prompts``; null: the scaffold's shipped one."""
    side_models: list[Name] = Field(default_factory=list[str], max_length=8)
    """Catalogue names of further models that the program may ask on its own account (titles, warm-up)."""
    provider_tools: ProviderTools | None = None
    """Null: by the network policy."""
    services: list[Name] = Field(default_factory=list[str], max_length=16)
    """Gateway services that the agent may use."""
    surface: Surface | None = None
    """Null: the scaffold's own. Only scaffolds that can use a screen take ``desktop`` or ``browser``."""
    screen: Screen | None = None
    """Size of the screen, of a surface that has one; null: 1280x800."""

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "AgentSettings":
        """Read them. Raises Invalid ``bad_settings``."""
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise Invalid("bad_settings", f"settings.{where}: {first['msg']}", setting=where) from error

    @property
    def further(self) -> dict[str, Any]:
        """The keys that only the scaffold knows."""
        return dict(self.model_extra or {})


class StopStep(Strict):
    signal: Literal["INT", "TERM", "HUP", "QUIT"]
    wait_s: float = Field(gt=0, le=120)
    """Seconds until the next step; after the last one the container is killed."""


class OutcomeRule(Strict):
    """When the program's exit counts as ``completed``; anything else is ``scaffold_error``."""

    exit_codes: list[int] = Field(default_factory=lambda: [0], min_length=1)
    rules: list[EndRule] = Field(default_factory=list[EndRule], max_length=16)
    """Looked at in order before ``exit_codes``; the first that holds decides."""
    require_files: list[RelativePath] = Field(default_factory=list[str])
    """Files (below /workspace) that must be regular files of the sealed deliverable."""


Verdict = Literal["allow", "deny"]
ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
"""Kinds of tool calls in the Agent Client Protocol."""


class AcpOptions(Strict):
    """How an agent that speaks the Agent Client Protocol is driven."""

    permission: Verdict = "allow"
    """Answer to the agent's questions whether it may do something. The sandbox limits it in any case."""
    permission_by_kind: dict[ToolKind, Verdict] = Field(default_factory=dict[ToolKind, Verdict])
    """Answers for kinds of tool calls; they go before ``permission``."""
    mode: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Id of a session mode of the agent; null: its own default. The agent's setting ``mode`` goes before it."""
    model: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """What the agent calls the model, a template as in ``argv``; null: nothing is selected over the protocol."""
    auth_method: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Id of the agent's way to sign in; null: none is needed."""
    start_s: float = Field(default=120, gt=0, le=3600)
    """Most seconds for each answer until the prompt is sent."""


class ScaffoldManifest(Strict):
    """A scaffold registered over the API: ``name@version``, immutable by digest (NEEDS C3, first part)."""

    name: Name
    version: Version
    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] = "command"
    """A key of ``scaffolds.registry.KINDS``: ``command`` runs ``argv``; ``oracle`` delivers the task's reference solution;
    ``nop`` delivers nothing; ``claude_code``, ``codex`` … run that program; ``acp`` runs ``argv`` and speaks the Agent
    Client Protocol with it; ``tool_agent``, ``computer_use`` and ``single_response`` are our own loops; ``remote``, ``external`` and
    ``person`` are driven from outside."""
    argv: list[str] = Field(default_factory=list[str], max_length=256)
    """Templates: ``{instruction} {instruction_file} {workspace} {output_dir} {deadline_unix} {seconds_left} {sample}``."""
    env: dict[str, str] = Field(default_factory=dict[str, str], max_length=128)
    """Same templates in the values."""
    prompt: Literal["argument", "stdin", "file"] = "file"
    """How the instruction arrives: in ``argv``, on standard input (then closed), or only in the instruction file."""
    files: list[FileRef] = Field(default_factory=list[FileRef], max_length=1000)
    """Files written below /workspace/.home/kit before the command starts (small programs; trees come as a kit image)."""
    kit: str | None = None
    """Image whose /opt/kit is mounted read-only at /opt/kit: one of the project's own (id or name), or a shipped one."""
    parser: Literal["text", "jsonl", "json"] = "text"
    """``text``: every output chunk is an event. ``jsonl``: complete lines that are JSON objects become events too. With a
    ``mapping``, what it says is the event in their place; a line of ``text`` is then ``{"line": …}``. ``json``: one object,
    perhaps over several lines, for programs that print one at the end."""
    mapping: list[MappingRule] = Field(default_factory=list[MappingRule], max_length=64)
    """Of standard output. What no rule maps stays raw output."""
    outcome: OutcomeRule = Field(default_factory=OutcomeRule)
    minimum: Limits | None = None
    """Least resources that the scaffold needs; the larger of this and the task's wins."""
    dialect: Dialect | None = None
    """Of a ``command``: the API that its program speaks. With it the run needs a model and gets the gateway."""
    stop: list[StopStep] = Field(default_factory=list[StopStep], max_length=4)
    """Signals before the container is killed at the wall clock's end; empty: the kind's own, or none."""
    hang_s: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds without output and without a model request after which the program counts as hung; null: never."""
    acp: AcpOptions | None = None
    """Of kind ``acp`` only."""
    surface: Surface | None = None
    """What its runs drive unless the agent's settings say otherwise; null: ``shell``, of ``computer_use`` ``desktop``."""

    vocabulary: dict[str, Any] | None = None
    """Words for the screen that no provider's vocabulary has, as data (``docs/computer-use.md``): with them a driver
    acts under the name ``manifest``. Checked by its own golden cases."""

    @model_validator(mode="after")
    def _has_only_its_own(self) -> "ScaffoldManifest":
        if self.acp is not None and self.kind != "acp":
            raise ValueError(f"a scaffold of kind {self.kind!r} takes no acp")
        return self

    def digest(self) -> str:
        body = self.model_dump(mode="json")
        body["outcome"] = {k: v for k, v in body["outcome"].items() if k != "rules" or v}
        # Fields of later versions, left out while they say nothing: a manifest keeps the digest it was stored under.
        return canonical_digest({k: v for k, v in body.items() if k not in _LATER or v})


_LATER = frozenset({"dialect", "stop", "hang_s", "mapping", "acp", "surface", "vocabulary"})
_SURFACES = {"computer_use": Surface.DESKTOP}
"""Kind → what it drives where neither manifest nor agent says; any other: a shell."""


def surface_of(manifest: ScaffoldManifest, settings: AgentSettings) -> Surface:
    return settings.surface or manifest.surface or _SURFACES.get(manifest.kind, Surface.SHELL)


class AgentSpec(Strict):
    """scaffold@version + model + settings."""

    scaffold: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")]
    model: Name | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=64)
    label: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """Short unique label; made from the parts when absent. Not part of the digest."""

    def digest(self, scaffold_digest: str) -> str:
        body = self.model_dump(mode="json", exclude={"label"})
        return canonical_digest({**body, "scaffold_digest": scaffold_digest})

    def models(self) -> list[str]:
        """Return the catalogue names that its program may ask, its own model first. Raises Invalid."""
        own = [] if self.model is None else [self.model]
        return [*own, *AgentSettings.of(self.settings).side_models]

    def default_label(self) -> str:
        parts = [self.scaffold, self.model, *(f"{k}={v}" for k, v in sorted(self.settings.items()))]
        return " · ".join(p for p in parts if p)[:80]
