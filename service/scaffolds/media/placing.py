"""Which media services an agent has, and how ``ws-media`` comes into its sandbox.

The command is two files of this package and a line of shell, written where the workspace's own programs are. It runs by
the kit's Python (docs/decisions/0013), so it works in environments that have none, else by the environment's.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.scaffolds.contract import Plan, PlanContext, WrittenFile
from service.scaffolds.media.inside import FIELDS

SERVICES = ("images", "speech", "video", "transcription")
"""Names of gateway services that speak the shapes of :mod:`service.scaffolds.media.asking`."""
VARIABLE = FIELDS
_MOST_FIELDS, _MOST_CHARS = 16, 500
_FOLDER = ".home/ws-media"
_COMMAND = """\
#!/bin/sh
home=${0%/*}/../ws-media
for python in /opt/kit/python/bin/python3 python3; do
  command -v "$python" >/dev/null 2>&1 && exec "$python" -I -B -c '
import sys
sys.path.insert(0, sys.argv.pop(1))
from service.scaffolds.media.inside import main
sys.exit(main(sys.argv[1:]))' "$home" "$@"
done
echo "ws-media: no_python: neither a kit nor this environment has one" >&2
exit 127
"""


def media_services(settings: AgentSettings) -> Sequence[str]:
    return [name for name in SERVICES if name in settings.services]


def media_fields(settings: AgentSettings) -> dict[str, dict[str, Any]]:
    """Return ``settings.media``: what goes into every request's body, by service. Raises Invalid ``bad_settings``."""
    given = settings.further.get("media", {})
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {"": None}
    for service, members in fields.items():
        known = (
            service in SERVICES and isinstance(members, dict) and len(cast("dict[str, Any]", members)) <= _MOST_FIELDS
        )
        if not known or not all(_is_plain(value) for value in cast("dict[str, Any]", members).values()):
            raise Invalid(
                "bad_settings", f"settings.media: service ({', '.join(SERVICES)}) → plain members of its body"
            )
    return cast("dict[str, dict[str, Any]]", fields)


def equipped(plan: Plan, context: PlanContext) -> Plan:
    """Return the plan with ``ws-media``, where a program is started and the agent has a media service."""
    if not plan.argv or not media_services(context.settings):
        return plan
    return replace(plan, written=[*plan.written, *_files()])


@cache
def _files() -> tuple[WrittenFile, ...]:
    here = Path(__file__).parent
    parts = [
        WrittenFile(f"{_FOLDER}/service/scaffolds/media/{name}", (here / name).read_bytes())
        for name in ("asking.py", "inside.py")
    ]
    return (*parts, WrittenFile(".home/bin/ws-media", _COMMAND.encode(), 0o755))


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _MOST_CHARS)
