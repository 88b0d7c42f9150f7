"""What a program is told: a prompt template with placeholders, replaced in one pass.

What a placeholder inserts is never looked at again. Shipped templates are files ``prompt_texts/<name>-<version>.md``; a
new wording is a new file, so that a digest of long ago can be read again.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest
from service.scaffolds import templates
from service.scaffolds.contract import PlanContext

PLAIN = "plain"
"""The task's instruction and nothing else: the template of every program unless the agent says otherwise."""
PLACEHOLDERS = frozenset(
    {
        *("instruction", "instruction_file", "workspace", "output_dir", "visible_files", "seconds_left"),
        *("deadline_unix", "sample", "temp_task_folder", "temp_output_dir", "temp_workspace"),
    }
)
"""``temp_…`` are the names that JobBench's own template uses."""
MAX_PROMPT_BYTES = 8 << 20
_TEXTS = Path(__file__).parent / "prompt_texts"
_FILE = re.compile(r"^([a-z][a-z0-9_]*)-(\d+)\.md$")


@dataclass(frozen=True, slots=True)
class Prompt:
    text: str
    template_name: str
    """``name@version`` of a shipped one, else ``own``."""
    template_sha256: str

    @property
    def data(self) -> bytes:
        return self.text.encode(errors="replace")

    def provenance(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.data).hexdigest()
        return {"template_name": self.template_name, "template": self.template_sha256, "prompt": digest}


@cache
def shipped() -> dict[str, str]:
    """Return the texts of the shipped templates by ``name@version``."""
    found = {f"{m[1]}@{m[2]}": p for p in sorted(_TEXTS.iterdir()) if (m := _FILE.match(p.name))}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items()}


def prompt_for(task: TaskManifest, context: PlanContext) -> Prompt:
    """Return what the agent is told.

    The agent's own template (``settings.prompt_template``) wins; else ``settings.prompt`` names a shipped one, by name
    (its newest version) or ``name@version``. Raises Invalid ``unknown_template``, ``unknown_placeholder``,
    ``prompt_too_long``.
    """
    name, text = _template(context)
    check(text, where=f"prompt template {name}")
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    # A file ends with a newline; a prompt need not.
    said = Prompt(templates.render(text.removesuffix("\n"), _values(task, context)), name, digest)
    if len(said.data) > MAX_PROMPT_BYTES:
        raise Invalid("prompt_too_long", f"the rendered prompt has more than {MAX_PROMPT_BYTES} bytes")
    return said


def check(text: str, *, where: str) -> None:
    """Refuse a template that names what is not known. Raises Invalid ``unknown_placeholder``."""
    unknown = sorted(templates.variables(text) - PLACEHOLDERS)
    if unknown:
        known = ", ".join(sorted(PLACEHOLDERS))
        detail = f"{where} names {unknown[0]!r}; known placeholders: {known}; write {{{{ and }}}} for braces"
        raise Invalid("unknown_placeholder", detail, placeholders=unknown)


def _template(context: PlanContext) -> tuple[str, str]:
    if context.template is not None:
        return "own", context.template
    wanted = str(context.settings.further.get("prompt", PLAIN))
    known = shipped()
    versions = [int(name.partition("@")[2]) for name in known if name.partition("@")[0] == wanted]
    full = f"{wanted}@{max(versions)}" if versions else wanted
    if full not in known:
        raise Invalid(
            "unknown_template", f"no shipped prompt template is called {wanted[:80]!r}", templates=sorted(known)
        )
    return full, known[full]


def _values(task: TaskManifest, context: PlanContext) -> dict[str, str]:
    folder = any(f.path.startswith("task_folder/") for f in task.visible)
    return {
        "instruction": task.instruction,
        "instruction_file": context.instruction_file,
        "workspace": context.workspace,
        "output_dir": context.output_dir,
        "visible_files": "\n".join(f"{context.workspace}/{f.path}" for f in task.visible),
        "seconds_left": str(int(context.seconds)),
        "deadline_unix": str(context.deadline_unix),
        "sample": str(context.sample),
        "temp_task_folder": f"{context.workspace}/task_folder" if folder else context.workspace,
        "temp_output_dir": context.output_dir,
        "temp_workspace": context.workspace,
    }
