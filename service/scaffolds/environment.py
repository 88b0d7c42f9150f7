"""The environment that every scaffold's command gets, so that none depends on an image's own settings."""

import json

from service.desktop.environment import SCREEN_ENVIRONMENT
from service.domain.agents import SCREENS, ScaffoldManifest
from service.domain.errors import Invalid
from service.scaffolds.contract import PlanContext
from service.scaffolds.media.placing import VARIABLE, media_fields, media_services

PATH = "/opt/kit/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PREFIX = "WORKSTEAD_"


def base_environment(context: PlanContext) -> dict[str, str]:
    return {
        "PATH": PATH,
        "HOME": context.home,
        "LANG": "C.UTF-8",
        f"{PREFIX}WORKSPACE": context.workspace,
        f"{PREFIX}OUTPUT_DIR": context.output_dir,
        f"{PREFIX}INSTRUCTION_FILE": context.instruction_file,
        f"{PREFIX}DEADLINE_UNIX": str(context.deadline_unix),
        f"{PREFIX}SAMPLE": str(context.sample),
        **(SCREEN_ENVIRONMENT if context.surface in SCREENS else {}),
        **({} if context.proxy is None else proxy_environment(context.proxy)),
        **_media_environment(context),
    }


def _media_environment(context: PlanContext) -> dict[str, str]:
    """Return what finds ``ws-media``, and what that command sends with every request."""
    fields = media_fields(context.settings)
    if not media_services(context.settings):
        return {}
    return {"PATH": f"{context.home}/bin:{PATH}", VARIABLE: json.dumps(fields)}


def proxy_environment(url: str) -> dict[str, str]:
    """Return what programs, Node, npm and pip read to find the proxy."""
    here = "127.0.0.1,localhost"
    both = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": here}
    return {
        **both,
        **{name.lower(): value for name, value in both.items()},
        "NODE_USE_ENV_PROXY": "1",
        "npm_config_proxy": url,
        "npm_config_https_proxy": url,
        "npm_config_noproxy": here,
        "PIP_PROXY": url,
    }


def check_name(name: str) -> None:
    """Refuse a name that no environment can hold or that is ours. Raises Invalid."""
    if not name.isascii() or not name.isidentifier():
        raise Invalid("bad_environment_name", f"{name!r} is not a name of letters, digits and '_'")
    if name.startswith(PREFIX):
        raise Invalid("reserved_environment_name", f"names that start with {PREFIX} are set by the service: {name}")


def refuse_command_fields(manifest: ScaffoldManifest) -> None:
    """Refuse what only a command can use. Raises Invalid ``not_for_this_kind``."""
    given = [n for n in ("argv", "env", "files", "kit") if getattr(manifest, n)]
    if given:
        raise Invalid("not_for_this_kind", f"a scaffold of kind {manifest.kind!r} takes no {given[0]}", fields=given)
