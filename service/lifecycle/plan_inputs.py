"""The paths, times and choices that every plan gets."""

from collections.abc import Sequence

from service.domain.agents import AgentSettings, AgentSpec, ScaffoldManifest, Surface, surface_of
from service.domain.grants import GrantedModel
from service.domain.tasks import NetworkPolicy
from service.sandboxes.contract import HOME, OUTPUT_DIR, WORKSPACE
from service.scaffolds.contract import PROXY, ModelChoice, PlanContext

INSTRUCTION_FILE = f"{HOME}/instruction.md"


def plan_context(
    agent: AgentSpec,
    models: Sequence[GrantedModel],
    *,
    sample: int,
    seconds: float,
    deadline_unix: int,
    policy: NetworkPolicy = NetworkPolicy.NONE,
    template: str | None = None,
    manifest: ScaffoldManifest | None = None,
) -> PlanContext:
    """``models``: the agent's own first. Raises Invalid ``bad_settings``."""
    seen, settings = [_choice(one) for one in models], AgentSettings.of(agent.settings)
    return PlanContext(
        sample=sample,
        seconds=max(0.0, seconds),
        deadline_unix=deadline_unix,
        workspace=WORKSPACE,
        home=HOME,
        output_dir=OUTPUT_DIR,
        instruction_file=INSTRUCTION_FILE,
        model=seen[0] if agent.model is not None and seen else None,
        side_models=seen[1:] if agent.model is not None else seen,
        settings=settings,
        proxy=None if policy is NetworkPolicy.NONE else PROXY,
        template=template,
        surface=Surface.SHELL if manifest is None else surface_of(manifest, settings),
        vocabulary=None if manifest is None else manifest.vocabulary,
    )


def _choice(granted: GrantedModel) -> ModelChoice:
    spec = granted.spec
    return ModelChoice(
        spec.name, spec.upstream_id, spec.dialect, spec.context_window, spec.max_output_tokens, tuple(spec.efforts)
    )
