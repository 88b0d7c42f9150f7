"""What an agent is told about a Freelance item. No gold answer and no explanation is ever in it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from workstead.importers.freelance.shapes import Answers, Choice, Program, Transformation

LETTERS = "ABCD"
LANGUAGES = {
    "python": ("Python 3", "solution.py"),
    "node": ("JavaScript for Node.js", "solution.js"),
    "php": ("PHP", "solution.php"),
    "ruby": ("Ruby", "solution.rb"),
    "bash": ("Bash", "solution.sh"),
    "perl": ("Perl", "solution.pl"),
}
"""Language → how people call it, and the file that the grader runs."""

_PROGRAM = """\
# {title}

{description}

## What to deliver

Write a program in {language} and save it as /workspace/output/{file}. It reads its input from standard input and writes \
its result, and nothing else, to standard output. It is run once per hidden test, without a network, for at most \
{seconds:g} seconds each; the job counts as done when every test passes.
"""

_ANSWERS = """\
# {title}

{description}
{introduction}
## What to deliver

Answer every question below. Save the answers as one JSON object, question id to answer, in \
/workspace/output/answers.json, for example {example}. For multiple choice the answer is the letter; for the other \
questions it is the exact resulting text. The questions are in /workspace/questions.json as well, character by character.

"""


def program_text(item: Program, language: str, seconds: float) -> str:
    named, file = LANGUAGES[language]
    return _PROGRAM.format(
        title=item.title.strip(), description=item.description.strip(), language=named, file=file, seconds=seconds
    )


def answers_text(item: Answers, questions: Sequence[Mapping[str, Any]]) -> str:
    introduction = item.test_content.introduction.strip()
    head = _ANSWERS.format(
        title=item.metadata.job_title.strip(),
        description=item.metadata.job_description.strip(),
        introduction=f"\n{introduction}\n" if introduction else "",
        example=json.dumps({q["id"]: "A" if "choices" in q else "text" for q in questions[:1]}),
    )
    return head + "\n".join(_shown(question) for question in questions)


def _shown(question: Mapping[str, Any]) -> str:
    lines = [f"### {question['id']}"]
    if "rule" in question:
        lines.append(question["rule"].strip())
    if "choices" not in question:
        return "\n\n".join([*lines, "Input:", _fenced(question["input"])]) + "\n"
    choices = "\n".join(f"{letter}. {text}" for letter, text in question["choices"].items())
    return "\n\n".join([*lines, question["question"], choices]) + "\n"


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def choice_question(key: str, item: Choice) -> dict[str, Any]:
    return {"id": key, "question": item.question, "choices": dict(zip(LETTERS, item.choices, strict=False))}


def text_question(key: str, item: Transformation, rule: str | None) -> dict[str, Any]:
    """Return the question; ``rule`` is a reviewed sentence that tells the rule without the answer."""
    return {"id": key, "input": item.input_text, **({} if rule is None else {"rule": rule})}
