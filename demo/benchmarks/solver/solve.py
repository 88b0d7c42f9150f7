"""A solver of the synthetic Freelance set, good or bad by its first argument: ``solve.py VARIANT INSTRUCTION OUTPUT``.

Shape A: it writes a program. Shape B: it writes answers. It knows the titles of the items, as a model knows its trade.
"""

import json
import sys
from pathlib import Path

import answers
from hostile import PROGRAMS as BAD

PROGRAMS = {
    "Count the words of a product text": "101.py",
    "Total of an invoice": "102.py",
    "Largest value of a CSV column": "103.py",
    "Roman numerals": "104.py",
    "Round to whole euros": "105.py",
}


def main(variant: str, instruction: Path, output: Path) -> int:
    title = instruction.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").strip()
    output.mkdir(parents=True, exist_ok=True)
    if title in PROGRAMS:
        own = Path(__file__).parent / "programs" / PROGRAMS[title]
        text = own.read_text(encoding="utf-8") if variant == "right" else BAD[variant]
        (output / "solution.py").write_text(text, encoding="utf-8")
    else:
        questions = json.loads((output.parent / "questions.json").read_text(encoding="utf-8"))
        given = {q["id"]: answers.answer(q) if variant == "right" else "E" for q in questions}
        (output / "answers.json").write_text(json.dumps(given), encoding="utf-8")
    print(f"{variant}: {title}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
