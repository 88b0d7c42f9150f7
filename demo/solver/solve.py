"""Solve whichever of the demo's tasks lies in the workspace: ``solve.py WORKSPACE OUTPUT_DIR``.

It knows kinds of documents and how they belong together, no answers.
"""

import sys
import time
from pathlib import Path

import contract
import inventory
import invoices
from report import say

SOLVERS = {"orders.xlsx": invoices.solve, "agreement.docx": contract.solve, "inventory.sqlite": inventory.solve}


def main(workspace: Path, output: Path) -> int:
    started = time.monotonic()
    files = sorted(p.relative_to(workspace).as_posix() for p in workspace.rglob("*") if p.is_file())
    shown = [f for f in files if not f.startswith((".", "output/"))]
    say(f"{len(shown)} files: {', '.join(shown)}")
    for name, solve in SOLVERS.items():
        if (workspace / name).is_file():
            solve(workspace, output)
            say(f"done in {time.monotonic() - started:.2f} s")
            return 0
    say("no task that I know")
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
