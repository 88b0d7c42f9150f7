"""Templates of argv and environment values: ``{name}`` of a fixed set of variables, replaced in one pass.

An instruction that contains ``{deadline_unix}`` stays as it is written.
"""

from service.domain.errors import Invalid
from service.domain.placeholders import render, variables

__all__ = ["RUN_TOKEN", "VARIABLES", "check_template", "render", "variables"]

VARIABLES = frozenset(
    {
        *("instruction", "instruction_file", "workspace", "output_dir", "visible_files", "deadline_unix"),
        *("seconds_left", "sample", "seed", "prompt", "model", "effort", "temperature", "max_turns"),
        *("gateway.anthropic", "gateway.openai", "gateway.gemini", "gateway.services"),
    }
)
"""What a manifest's argv and environment may name. ``prompt``: the rendered prompt template; ``seed``: a number that
follows from task and sample; what the agent does not set is empty."""
RUN_TOKEN = "{run_token}"  # noqa: S105 - a name
"""As the whole value of an environment variable: the run's token. Nowhere else: argv can be read by everybody inside."""


def check_template(text: str, *, where: str) -> None:
    """Refuse unknown variables and NUL. Raises Invalid ``unknown_template_variable`` or ``nul_in_template``."""
    if "\0" in text:
        raise Invalid("nul_in_template", f"{where} contains a NUL character")
    unknown = sorted({name for name in variables(text) if name not in VARIABLES})
    if unknown:
        known = ", ".join(sorted(VARIABLES))
        detail = f"{where} names {unknown[0]!r}; known variables: {known}; write {{{{ and }}}} for braces"
        raise Invalid("unknown_template_variable", detail, variables=unknown)
