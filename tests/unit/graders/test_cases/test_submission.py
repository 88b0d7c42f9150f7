"""Where the program is in what was delivered."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.graders.contract import GradingInput
from service.graders.test_cases.languages import TOOLS
from service.graders.test_cases.results import Cause
from service.graders.test_cases.settings import TestCasesSettings
from service.graders.test_cases.submission import (
    MAX_PROGRAM_BYTES,
    Unusable,
    blocks,
    extract,
    read_answers,
    read_program,
)

PYTHON = TOOLS["python"].tags


def delivered(*files: tuple[str, bytes] | ArtifactEntry) -> GradingInput:
    entries = [
        f if isinstance(f, ArtifactEntry) else ArtifactEntry(f[0], EntryKind.FILE, len(f[1]), "a" * 64) for f in files
    ]
    content = {f[0]: f[1] for f in files if not isinstance(f, ArtifactEntry)}
    return GradingInput({}, entries, lambda _: io.BytesIO(), lambda e: io.BytesIO(content[e.path]))


def program(*files: tuple[str, bytes] | ArtifactEntry, **settings: Any) -> bytes:
    return read_program(delivered(*files), TestCasesSettings(**settings))[0]


def cause(*files: tuple[str, bytes] | ArtifactEntry, **settings: Any) -> Cause | None:
    with pytest.raises(Unusable) as raised:
        read_program(delivered(*files), TestCasesSettings(**settings))
    return raised.value.result.cause


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("print(1)", ("print(1)", "whole_text")),
        ("Here:\n```python\nprint(1)\n```\nDone.", ("print(1)\n", "fenced_block")),
        ("```\nprint(1)\n```", ("print(1)\n", "plain_block")),
        ("```sh\npip install x\n```\n```py\nprint(1)\n```", ("print(1)\n", "fenced_block")),
        ("```python\nx\n```\n```python\nlonger\n```", ("longer\n", "fenced_block")),
        ("```java\nclass A {}\n```", ("", "nothing")),
        ("~~~python\nprint('```')\n~~~", ("print('```')\n", "fenced_block")),
        ("````python\n```\ninner\n```\n````", ("```\ninner\n```\n", "fenced_block")),
        ("```python\nprint(1)", ("print(1)", "fenced_block")),
        ("```Python title=\"a\"\nprint(1)\n```", ("print(1)\n", "fenced_block")),
        ("   ```python\nprint(1)\n   ```", ("print(1)\n", "fenced_block")),
        ("    ```python\nprint(1)", ("    ```python\nprint(1)", "whole_text")),
        ("", ("", "whole_text")),
    ],
)  # fmt: skip
def test_extract(text: str, taken: tuple[str, str]) -> None:
    assert extract(text, PYTHON) == taken


@given(st.text(st.sampled_from("`~ \npythonx"), max_size=200))
def test_blocks_never_invent_text(text: str) -> None:
    for block in blocks(text):
        assert block.text in text
        assert block.tag in text.lower()


def test_a_program_is_taken_as_it_is_from_its_own_file() -> None:
    data = b"\xff\xfe not UTF-8, not touched\r\n```python\n"
    assert program(("output/solution.py", data)) == data
    assert program(("output/answer.md", b"no"), ("output/solution.py", b"yes")) == b"yes"
    assert program(("output/answer.txt", b"```python\nyes\n```")) == b"yes\n"
    assert program(("output/solution.js", b"yes"), language="node") == b"yes"
    assert program(("output/mine.py", b"yes"), submission="output/mine.py") == b"yes"


@pytest.mark.fault(80)
def test_what_is_no_program_has_a_typed_cause() -> None:
    assert cause() is Cause.MISSING_DELIVERABLE
    assert cause(("output/other.py", b"x")) is Cause.MISSING_DELIVERABLE
    link = ArtifactEntry("output/solution.py", EntryKind.SYMLINK, link_target="/etc/passwd")
    assert cause(link, ("output/answer.md", b"x")) is Cause.MISSING_DELIVERABLE
    assert cause(("output/solution.py", b" \n")) is Cause.NO_CODE
    assert cause(("output/solution.py", b"x" * (MAX_PROGRAM_BYTES + 1))) is Cause.NO_CODE
    assert cause(("output/answer.md", b"\xff")) is Cause.NO_CODE
    assert cause(("output/answer.md", b"```java\nclass A {}\n```")) is Cause.NO_CODE


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"a": NaN}', b"\xff", b'{"a": 1, "a": 2}'])
def test_answers_that_are_no_object(data: bytes) -> None:
    with pytest.raises(Unusable) as raised:
        read_answers(delivered(("output/answers.json", data)), "output/answers.json")
    assert raised.value.result.cause is Cause.UNPARSABLE_ANSWER
    with pytest.raises(Unusable) as missing:
        read_answers(delivered(), "output/answers.json")
    assert missing.value.result.cause is Cause.MISSING_DELIVERABLE
