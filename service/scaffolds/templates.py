"""Templates of argv and environment values: ``{name}`` of a fixed set of variables, replaced in one pass.

What a variable inserts is never looked at again, and no attribute, index or format can be named: an instruction that
contains ``{deadline_unix}`` stays as it is written. ``{{`` and ``}}`` stand for braces.
"""

import re
from collections.abc import Mapping

from service.domain.errors import Invalid

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
_TOKEN = re.compile(r"\{\{|\}\}|\{(gateway\.[a-z]+|[A-Za-z_][A-Za-z0-9_]*)\}")


def check_template(text: str, *, where: str) -> None:
    """Refuse unknown variables and NUL. Raises Invalid ``unknown_template_variable`` or ``nul_in_template``."""
    if "\0" in text:
        raise Invalid("nul_in_template", f"{where} contains a NUL character")
    unknown = sorted({name for name in variables(text) if name not in VARIABLES})
    if unknown:
        known = ", ".join(sorted(VARIABLES))
        detail = f"{where} names {unknown[0]!r}; known variables: {known}; write {{{{ and }}}} for braces"
        raise Invalid("unknown_template_variable", detail, variables=unknown)


def variables(text: str) -> set[str]:
    return {match[1] for match in _TOKEN.finditer(text) if match[1]}


def render(text: str, values: Mapping[str, str]) -> str:
    """Replace every variable of a template that ``check_template`` accepted."""

    def one(match: re.Match[str]) -> str:
        return values[match[1]] if match[1] else match[0][0]

    return _TOKEN.sub(one, text)
