"""Sources of the published sizes for the bench ``import``: deterministic, written by us, in the exact formats."""

import json
import random
from pathlib import Path
from typing import Any

FREELANCE_ITEMS = 1_115
JOBBENCH_TASKS = 130
JOBBENCH_FILES = 500
JOBBENCH_BYTES = 200 << 20
WORDS = [
    "list",
    "order",
    "sum",
    "name",
    "date",
    "row",
    "text",
    "price",
    "table",
    "item",
    "unit",
    "total",
    "field",
    "value",
    "word",
    "code",
    "rule",
    "file",
    "page",
    "sheet",
]


def freelance(path: Path, items: int = FREELANCE_ITEMS, seed: int = 3) -> Path:
    """Write a file of shape B, about 12 KB an item, with the bare NaN of the released one."""
    source = random.Random(seed)
    path.write_text(json.dumps([_item(source, 10_000 + n) for n in range(items)]), encoding="utf-8")
    return path


def _item(source: random.Random, number: int) -> dict[str, Any]:
    price = round(source.uniform(30, 3_000), 2)
    letters = [source.choice("ABCD") for _ in range(4)]
    return {
        "metadata": {
            "project_id": number,
            "job_title": _words(source, 6),
            "job_description": _words(source, 1_100),
            "tags": [source.choice(WORDS) for _ in range(4)],
            "pricing": {"min_price": price / 2, "max_price": price * 2, "avg_price": price, "currency": "EUR",
                        "rate_type": "fixed", "usd_conversion": {"avg_price": price * 1.094}},
            "skill_tags": {"tag_1": source.choice(WORDS), "tag_4": float("nan")},
        },
        "test_content": {
            "introduction": _words(source, 60),
            "multiple_choice": [
                {"question": f"{n}: {_words(source, 30)}", "choices": [f"{c} {_words(source, 8)}" for c in "ABCD"],
                 "correct_answer": letter, "points": 10, "explanation": _words(source, 60)}
                for n, letter in enumerate(letters)
            ],
            "string_transformations": [
                {"input_text": (text := _words(source, 25)), "expected_output": text.upper(), "points": 15,
                 "explanation": _words(source, 60)}
                for _ in range(4)
            ],
            "passing_score": 70,
            "time_limit": "60 minutes",
        },
    }  # fmt: skip


def jobbench(
    root: Path,
    tasks: int = JOBBENCH_TASKS,
    files: int = JOBBENCH_FILES,
    total_bytes: int = JOBBENCH_BYTES,
    seed: int = 2,
) -> Path:
    """Write ``tasks`` folders over both splits with ``files`` reference files of ``total_bytes`` in all."""
    source = random.Random(seed)
    folders = [_task(root, n, source) for n in range(tasks)]
    for n in range(files):
        data = source.randbytes(total_bytes // files)
        (folders[n % tasks] / f"reference {n:03}.{('xlsx', 'pdf', 'docx', 'csv')[n % 4]}").write_bytes(data)
    return root


def _task(root: Path, n: int, source: random.Random) -> Path:
    split = "dataset" if n % 2 == 0 else "dataset_easy"
    folder = root / split / f"occupation_{n // 8:02}" / f"task{n // 2 % 4 + 1}"
    (folder / "task_folder").mkdir(parents=True)
    rubrics = [
        {"rubric": f"{i} {_words(source, 12)}", "weight": 10, "criterion": [_words(source, 20)]} for i in range(8)
    ]
    (folder / "RUBRICS.json").write_text(json.dumps({"rubrics": rubrics}), encoding="utf-8")
    (folder / "task_card.md").write_text(_words(source, 400), encoding="utf-8")
    text = f"{_words(source, 300)}\n\nReference Files\n- as found in the folder\n"
    (folder / "task_folder/TASK_INSTRUCTIONS.txt").write_text(text, encoding="utf-8")
    return folder / "task_folder"


def _words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))
