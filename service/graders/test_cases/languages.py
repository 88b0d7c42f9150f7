"""How a program of each language is run and checked: absolute paths of image ``code_exec``, nothing from PATH."""

from dataclasses import dataclass
from typing import Literal

Language = Literal["python", "node", "php", "ruby", "perl", "bash"]

_COMPILES = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')"


@dataclass(frozen=True, slots=True)
class Tool:
    file: str
    """Name under which the program is written."""
    run: tuple[str, ...]
    check: tuple[str, ...]
    """Ends with 0 iff the program is one at all; it is not run. Only tells ``compile_error`` from ``crash``."""
    tags: frozenset[str]
    """Names of the language on a fenced block."""


def _tool(extension: str, run: str, check: tuple[str, ...], *tags: str) -> Tool:
    name = f"solution.{extension}"
    return Tool(name, (*run.split(), name), (*check, name), frozenset({extension, *tags}))


TOOLS: dict[Language, Tool] = {
    "python": _tool("py", "/usr/bin/python3 -s", ("/usr/bin/python3", "-I", "-c", _COMPILES), "python", "python3"),
    "node": _tool("js", "/usr/bin/node", ("/usr/bin/node", "--check"), "javascript", "node", "nodejs"),
    "php": _tool("php", "/usr/bin/php -d display_errors=stderr", ("/usr/bin/php", "-l")),
    "ruby": _tool("rb", "/usr/bin/ruby", ("/usr/bin/ruby", "-c"), "ruby"),
    "perl": _tool("pl", "/usr/bin/perl", ("/usr/bin/perl", "-c"), "perl"),
    "bash": _tool("sh", "/bin/bash", ("/bin/bash", "-n"), "bash", "shell"),
}
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - a path inside the sandbox, where no user's own modules are
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
