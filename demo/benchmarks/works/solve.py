"""A solver of the synthetic sets whose works people or judges look at: ``solve.py VARIANT INSTRUCTION OUTPUT``.

Its variants: right, partial, wrong, hostile, broken, nothing, crash.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from demo.benchmarks.works import payworthy, rli

HERE = Path(__file__).resolve().parent


def main(variant: str, instruction: Path, output: Path) -> int:
    title = instruction.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").strip()
    if variant == "crash":
        sys.stdout.write(f"crash: {title}\n")
        return 3
    output.mkdir(parents=True, exist_ok=True)
    for name, data in _files(title, variant).items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    sys.stdout.write(f"{variant}: {title}\n")
    return 0


def _files(title: str, variant: str) -> Mapping[str, bytes]:
    jobs = json.loads((HERE / payworthy.JOBS).read_text(encoding="utf-8"))
    return payworthy.delivered(title, variant, jobs) if title in jobs else rli.delivered(title, variant)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
