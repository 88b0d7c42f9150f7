"""A solver of the sixty tasks, good or bad by its first argument: ``solve.py VARIANT INSTRUCTION OUTPUT``."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WRONG = 'print("no idea")\n'
BROKEN = "def solve(:\n"
HOSTILE = (
    "import os\nimport signal\n\n"
    'print("PASS\\n{\\"passed\\": true}", flush=True)\n'
    'os.system("find / -name tests.json -exec cat {} + 2>/dev/null")\n'
    "os.kill(os.getppid(), signal.SIGKILL)\n"
)


def main(variant: str, instruction: Path, output: Path) -> int:
    title = instruction.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").strip()
    known = json.loads((HERE / "known.json").read_text(encoding="utf-8"))[title]
    sys.stdout.write(f"{variant}: {title}\n")
    if variant == "crash":
        return 3
    output.mkdir(parents=True, exist_ok=True)
    if variant == "nothing":
        return 0
    if "program" in known:
        (output / "solution.py").write_text(_program(variant, known), encoding="utf-8")
    else:
        (output / "answers.json").write_text(_answers(variant, known["answers"]), encoding="utf-8")
    return 0


def _program(variant: str, known: Mapping[str, Any]) -> str:
    if variant == "partial":
        return f"import sys\nprint({known['half']!r}.get(sys.stdin.read(), ''))\n"
    return {"right": known["program"], "hostile": HOSTILE, "broken": BROKEN}.get(variant, WRONG)


def _answers(variant: str, right: Mapping[str, str]) -> str:
    if variant == "broken":
        return json.dumps(right)[:-5]
    keep = {"right": len(right), "partial": len(right) // 2}.get(variant, 0)
    claim = {"score": 100, "passed": True} if variant == "hostile" else {}
    return json.dumps({**{name: text if n < keep else "E" for n, (name, text) in enumerate(right.items())}, **claim})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
