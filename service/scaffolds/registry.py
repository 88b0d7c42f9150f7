"""Scaffold kinds by name. A dotted path is imported when its kind is first used."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module, metadata
from typing import cast

from service.desktop.vocabularies.data import checked
from service.domain.agents import SCREENS, AgentSettings, ScaffoldManifest, Surface, surface_of
from service.domain.errors import Invalid
from service.scaffolds.contract import Scaffold, SurfaceScaffold

KINDS = {
    "command": "service.scaffolds.command.scaffold:CommandScaffold",
    "acp": "service.scaffolds.acp.scaffold:AcpScaffold",
    "oracle": "service.scaffolds.oracle.scaffold:OracleScaffold",
    "nop": "service.scaffolds.nop.scaffold:NopScaffold",
    "claude_code": "service.scaffolds.claude_code.scaffold:ClaudeCodeScaffold",
    "codex": "service.scaffolds.codex.scaffold:CodexScaffold",
    "gemini_cli": "service.scaffolds.gemini_cli.scaffold:GeminiCliScaffold",
    "opencode": "service.scaffolds.opencode.scaffold:OpenCodeScaffold",
    "openclaw": "service.scaffolds.openclaw.scaffold:OpenClawScaffold",
    "openhands": "service.scaffolds.openhands.scaffold:OpenHandsScaffold",
    "mini_swe": "service.scaffolds.mini_swe.scaffold:MiniSweScaffold",
    "computer_use": "service.scaffolds.computer_use.scaffold:ComputerUseScaffold",
    "tool_agent": "service.scaffolds.tool_agent.scaffold:ToolAgentScaffold",
    "single_response": "service.scaffolds.single_response.scaffold:SingleResponseScaffold",
    "remote": "service.scaffolds.remote.scaffold:RemoteScaffold",
    "external": "service.scaffolds.external.scaffold:ExternalScaffold",
    "person": "service.scaffolds.person.scaffold:PersonScaffold",
}


ENTRY_POINTS = "workstead.scaffolds"
"""Group of entry points by which installed packages bring kinds of their own: name → class. Ours win."""


@cache
def kinds() -> Mapping[str, str]:
    """Return every kind and where its class is."""
    brought = {point.name: point.value for point in metadata.entry_points(group=ENTRY_POINTS)}
    return {**brought, **KINDS}


@cache
def scaffold_for(kind: str) -> Scaffold:
    """Return the scaffold of this kind. Raises Invalid ``unknown_scaffold_kind``."""
    path = kinds().get(kind)
    if path is None:
        raise Invalid("unknown_scaffold_kind", f"no scaffold kind is called {kind!r}", kinds=sorted(kinds()))
    module, _, name = path.partition(":")
    return cast(Scaffold, getattr(import_module(module), name)())


def check(manifest: ScaffoldManifest) -> None:
    """Refuse a manifest that its kind could not plan. Raises Invalid."""
    scaffold_for(manifest.kind).check(manifest)
    surface_for(manifest, AgentSettings())
    if manifest.vocabulary is None:
        return
    if not isinstance(scaffold_for(manifest.kind), SurfaceScaffold):
        raise Invalid("surface_not_supported", f"a scaffold of kind {manifest.kind!r} has no screen to use words on")
    checked(manifest.vocabulary)


def surface_for(manifest: ScaffoldManifest, settings: AgentSettings) -> Surface:
    """Return what a run of this agent drives. Raises Invalid ``surface_not_supported``."""
    surface, scaffold = surface_of(manifest, settings), scaffold_for(manifest.kind)
    possible = scaffold.surfaces if isinstance(scaffold, SurfaceScaffold) else frozenset(Surface) - SCREENS
    if surface not in possible:
        detail = f"a scaffold of kind {manifest.kind!r} cannot drive the surface {surface.value!r}"
        raise Invalid("surface_not_supported", detail, surface=surface.value, surfaces=sorted(possible))
    return surface
