"""What the adapters of real agent programs share: checks of manifest and settings, the plan, the rule of completion."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from service.domain.agents import AgentSettings, ScaffoldManifest, StopStep
from service.domain.errors import Invalid
from service.domain.limits import KIB
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.scaffolds.contract import AgentReport, ModelChoice, Plan, PlanContext, WrittenFile
from service.scaffolds.environment import base_environment, check_name

LADDER = (StopStep(signal="INT", wait_s=10), StopStep(signal="TERM", wait_s=5))
"""Most programs sum up on INT; what does not end on TERM is killed with its container."""
HANG_S = 1200.0
"""Longer than the longest silent tool call of the programs (600 s) and than a slow answer of a provider."""
MAX_ARGUMENT_BYTES = 128 * KIB - 1
"""The kernel's limit on one argument or environment string (MAX_ARG_STRLEN), without its final NUL."""
PROMPT_SETTING = "prompt"
"""Further setting of every program: the name of a shipped prompt template."""
_LIMITING = ("max_turns", "temperature")


def check_manifest(manifest: ScaffoldManifest) -> None:
    """Refuse what the kind decides itself. Raises Invalid ``not_for_this_kind``, ``kit_missing`` and those of names."""
    given = [n for n in ("argv", "files", "dialect") if getattr(manifest, n)]
    if given:
        raise Invalid("not_for_this_kind", f"a scaffold of kind {manifest.kind!r} takes no {given[0]}", fields=given)
    if manifest.kit is None:
        detail = f"kind {manifest.kind!r} needs `kit`: the image with its program, for example kits/{manifest.kind}"
        raise Invalid("kit_missing", detail)
    for name in manifest.env:
        check_name(name)


def check_settings(
    settings: AgentSettings, kind: str, takes: Collection[str] = (), further: Collection[str] = ()
) -> None:
    """Refuse settings that the program would silently not follow. ``takes``: of ``max_turns`` and ``temperature``.

    Raises Invalid ``unsupported_setting``.
    """
    refused = [n for n in _LIMITING if getattr(settings, n) is not None and n not in takes]
    refused += sorted(settings.further.keys() - {PROMPT_SETTING, *further})
    if refused:
        detail = f"a scaffold of kind {kind!r} takes no setting {refused[0][:80]!r}"
        if refused[0] == "max_turns":
            detail += "; limit the run's budget.max_requests instead"
        raise Invalid("unsupported_setting", detail, settings=refused)


def model_of(context: PlanContext, kind: str, dialects: Collection[Dialect]) -> ModelChoice:
    """Return the agent's model. Raises Invalid ``model_missing``, ``dialect_unsupported``."""
    model = context.model
    if model is None:
        raise Invalid("model_missing", f"an agent on a scaffold of kind {kind!r} needs a model")
    if model.dialect not in dialects:
        known = ", ".join(sorted(dialects))
        detail = f"kind {kind!r} speaks {known}; model {model.name} speaks {model.dialect}"
        raise Invalid("dialect_unsupported", detail, dialects=sorted(dialects))
    return model


def home_file(context: PlanContext, path: str, data: bytes) -> WrittenFile:
    """Return a file at ``path`` below the agent's HOME."""
    home = PurePosixPath(context.home).relative_to(context.workspace)
    return WrittenFile(str(home / path), data)


@dataclass(frozen=True, slots=True)
class Command:
    """What an adapter decides."""

    argv: Sequence[str]
    env: Mapping[str, str]
    stdin: bytes = b""
    token_variables: Sequence[str] = ()
    written: Sequence[WrittenFile] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stop: Sequence[StopStep] = LADDER
    hang_s: float = HANG_S


def plan_of(command: Command, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
    """Return the plan; the manifest's own variables, ladder and hang rule win. Raises Invalid for what is too long."""
    env = {**base_environment(context), **command.env, **manifest.env}
    check_strings([*command.argv, *(f"{name}={value}" for name, value in env.items())])
    return Plan(
        argv=command.argv,
        env=env,
        stdin=command.stdin,
        written=command.written,
        token_variables=command.token_variables,
        stop=manifest.stop or command.stop,
        hang_s=manifest.hang_s or command.hang_s,
        provenance=command.provenance,
    )


def check_strings(strings: Sequence[str]) -> None:
    """Refuse what no argument or variable can hold. Raises Invalid ``nul_in_argument``, ``argument_too_long``."""
    for text in strings:
        if "\0" in text:
            raise Invalid("nul_in_argument", "a setting with a NUL character cannot be given to a program")
        if len(text.encode(errors="replace")) > MAX_ARGUMENT_BYTES:
            raise Invalid("argument_too_long", f"an argument would have more than {MAX_ARGUMENT_BYTES} bytes")


def ended_well(exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
    """Tell whether the program said that it had finished. Its exit code alone says nothing, and may only deny it.

    A limit of the agent's own settings (turns) is an orderly ending, whatever the program exits with.
    """
    if report is None or exit.signal is not None:
        return False
    if report.status == "limit":
        return True
    return report.status == "success" and exit.code in manifest.outcome.exit_codes
