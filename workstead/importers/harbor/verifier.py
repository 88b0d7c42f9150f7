"""A task's own tests as method ``script`` runs them: without a network, in the task's image, on a read-only root."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_TESTS_BYTES = 64 << 20
MIN_MEMORY, MAX_MEMORY = 2 << 30, 64 << 30
MAX_S = 7_200.0
PYTEST = "workstead-pytest.sh"
PYTEST_SCRIPT = b"""\
#!/bin/bash
# In place of the task's script, which would install what the image has already.
export PYTHONDONTWRITEBYTECODE=1
python3 -m pytest -q -p no:cacheprovider /tests
case $? in
  0) echo 1 > /logs/verifier/reward.txt ;;
  1) echo 0 > /logs/verifier/reward.txt ;;
esac
"""
"""Any other end of pytest says nothing of the work: no reward, and a grading that failed."""
_INSTALLS = re.compile(
    r"\b(?:apt|apt-get|apk|yum|dnf|pip3?|pipx|npm|pnpm|yarn|gem|cargo|uv(?:\s+pip|\s+tool)?|conda|mamba)\s+"
    r"(?:-\S+\s+)*(?:install|add|update|sync)\b|\b(?:uvx|npx)\s"
)
_FETCHES = re.compile(r"\b(?:curl|wget|git\s+clone)\b[^\n|;&]*?https?://(?!localhost|127\.|\[::1\])")
_SERVICES = re.compile(r"\b(?:docker|docker-compose|systemctl|service\s+\S+\s+start)\b")


def needs_of(script: str) -> Iterator[str]:
    """Yield what a script wants that no verifier has, in words."""
    for number, line in enumerate(script.splitlines(), 1):
        code = "" if line.lstrip().startswith("#") else line
        if _INSTALLS.search(code) or _FETCHES.search(code):
            yield f"a network in the verifier (line {number} of its script installs or fetches)"
            return
    if _SERVICES.search(script):
        yield "services beside the verifier"


def grader_of(
    workdir: str, timeout_s: float, env: Mapping[str, str], memory: float | None, size: int, *, pytest: bool
) -> dict[str, Any]:
    """Return the grader. ``workdir``: where the script starts; ``size``: bytes of the tests."""
    script = f"/tests/{PYTEST}" if pytest else "/tests/test.sh"
    # The folder is the agent's to make: without it there is nothing to test, and the script says so.
    start = ["/bin/bash", "-c", 'cd "$1" 2>/dev/null; exec /bin/bash "$2"', "start", workdir, script]
    needed = max(MIN_MEMORY, int(memory or 0), 32 * size)
    settings = {
        "command": ["/bin/bash", script] if workdir == "/workspace" else start,
        "timeout_s": min(max(timeout_s, 1.0), MAX_S),
        "memory_bytes": min(needed, MAX_MEMORY),
        **({"env": dict(env)} if env else {}),
    }
    return {"method": "script", "settings": settings}
