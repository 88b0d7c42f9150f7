"""Thirty tasks of shape B: questions with four choices, and texts that a rule changes."""

import random
from collections.abc import Callable, Mapping
from typing import Any

TRADES = (
    *("bakery", "bicycle shop", "book shop", "brewery", "café", "carpenter", "cinema", "clinic", "dairy", "dentist"),
    *("farm", "florist", "garage", "gym", "hair salon", "hotel", "jeweller", "library", "museum", "music school"),
    *(
        "nursery",
        "optician",
        "pharmacy",
        "pottery",
        "printer",
        "sailing school",
        "tailor",
        "theatre",
        "toy shop",
        "vineyard",
    ),
)
CATEGORIES = ("Data Entry", "Excel", "Translation", "Email")
CURRENCIES = (("USD", 1.0), ("EUR", 1.094), ("CAD", 0.748), ("AUD", 0.671))
FACTS = (
    ("Which sign parts the columns of a CSV file?", "A comma", ("A hash", "A tilde", "An at sign")),
    ("What do two rows with one key show?", "A duplicate", ("A total", "A header", "An outlier")),
    ("How is a leading zero kept?", "As text", ("As a date", "By rounding", "As a currency")),
    ("Which date sorts rightly as text?", "2026-01-05", ("05.01.2026", "1/5/26", "5 Jan 2026")),
    ("What is the middle of sorted values?", "The median", ("The mean", "The mode", "The range")),
    ("What is 15 % of 200?", "30", ("15", "35", "300")),
    ("What is 'Rechnung' in English?", "Invoice", ("Order", "Receipt", "Offer")),
    ("What hides who else gets an e-mail?", "Bcc", ("Cc", "Reply to all", "Subject")),
    ("Which formula adds up A1 to A9?", "=SUM(A1:A9)", ("=ADD(A1,A9)", "=A1+A9", "=COUNT(A1:A9)")),
    ("What does a filter change?", "Which rows are shown", ("The values", "The column names", "The file's size")),
    ("How many bytes has a kibibyte?", "1024", ("1000", "512", "8")),
    ("Which file keeps several sheets?", "An xlsx file", ("A csv file", "A txt file", "A png file")),
)
Rule = tuple[str, Callable[[str], str], tuple[str, ...]]
RULES: tuple[Rule, ...] = (
    ("The surname goes behind the first name.", lambda t: " ".join(reversed(t.split(", "))), ("Meyer, Anna", "Ito, Ken")),
    ("Day, month and year become year, month and day.", lambda t: "-".join(reversed(t.split("."))), ("05.01.2026", "31.12.2025")),
    ("Blanks become underscores and letters small.", lambda t: t.lower().replace(" ", "_"), ("Net Price", "Order Number A")),
    ("Words stand in reverse order.", lambda t: " ".join(reversed(t.split())), ("one two three", "last but not least")),
    ("Only digits stay.", lambda t: "".join(filter(str.isdigit, t)), ("+353 1 555 0142", "Room 12, floor 3")),
    ("Runs of blanks become one.", lambda t: " ".join(t.split()), ("  two   blanks ", "a  b   c")),
    ("The part behind the at sign.", lambda t: t.partition("@")[2], ("anna@shop.example", "ken@mail.test.example")),
    ("The decimal point becomes a comma, with two places.", lambda t: f"{float(t):.2f}".replace(".", ","), ("12.5", "1999")),
)  # fmt: skip


def item(number: int) -> dict[str, Any]:
    """Return task ``number``, the same one each time."""
    draw = random.Random(number)  # noqa: S311  # a draw of questions, no secret
    trade = TRADES[number % len(TRADES)]
    currency, rate = CURRENCIES[number % len(CURRENCIES)]
    low = 40 + 10 * (number % 9)
    prices = {"min_price": low, "max_price": 3 * low, "avg_price": 2.0 * low}
    converted = {name: round(value * rate, 2) for name, value in prices.items()}
    category = CATEGORIES[number % len(CATEGORIES)]
    return {
        "metadata": {
            "project_id": 700 + number,
            "job_title": f"Tidy the records of a {trade}",
            "job_description": f"A {trade} has records from several people and wants them in one form.",
            "tags": [category],
            "pricing": {**prices, "currency": currency, "rate_type": "fixed", "usd_conversion": converted},
        },
        "test_content": {
            "introduction": "Answers must match exactly.",
            "multiple_choice": [_choice(fact, draw) for fact in draw.sample(FACTS, 4)],
            "string_transformations": [_text(rule, draw) for rule in draw.sample(RULES, 4)],
            "passing_score": 70,
            "time_limit": "60 minutes",
        },
    }


def _choice(fact: tuple[str, str, tuple[str, ...]], draw: random.Random) -> Mapping[str, Any]:
    question, right, others = fact
    choices = draw.sample((right, *others), 4)
    letter = "ABCD"[choices.index(right)]
    return {
        "question": question,
        "choices": choices,
        "correct_answer": letter,
        "points": 10,
        "explanation": f"It is: {right}.",
    }


def _text(rule: Rule, draw: random.Random) -> Mapping[str, Any]:
    explanation, change, inputs = rule
    given = draw.choice(inputs)
    return {"input_text": given, "expected_output": change(given), "points": 15, "explanation": explanation}
