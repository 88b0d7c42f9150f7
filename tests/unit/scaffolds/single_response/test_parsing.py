"""Files are read from answers of many forms; no name leads out of the output folder, no text makes it fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import Invalid
from service.domain.paths import check_relative_path
from service.scaffolds.single_response.parsing import MAX_FILES, clean_name, parse

CSV = "a,b\n1,2\n"


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        (f'Hello.\n<file name="t.csv">\n{CSV}</file>\nBye.', "tags"),
        (f"<FILE path='/workspace/output/t.csv'>\n```csv\n{CSV}```\n</FILE>", "tags"),
        (f"```csv path=t.csv\n{CSV}```\n", "fences"),
        (f'```csv title="output/t.csv"\n{CSV}```', "fences"),
        (f"```t.csv\n{CSV}```", "fences"),
        (f"```csv:t.csv\n{CSV}```", "fences"),
        (f"**t.csv**\n\n```\n{CSV}```", "fences"),
        (f"### `t.csv`\n~~~~\n{CSV}~~~~", "fences"),
        (f"File: t.csv\n```csv\n{CSV}```", "fences"),
        ('{"t.csv": "a,b\\n1,2\\n"}', "json"),
        ('Here:\n```json\n{"files": [{"path": "t.csv", "content": "a,b\\n1,2\\n"}], "note": "x"}\n```', "json"),
        ('{"files": {"./t.csv": "a,b\\n1,2\\n"}}', "json"),
    ],
)
def test_each_form(answer: str, form: str) -> None:
    found = parse(answer)
    assert (found.files, found.form, found.refused) == ({"t.csv": CSV}, form, [])


def test_what_is_in_no_file_is_the_note() -> None:
    assert parse(f'Before.\n<file name="t.csv">\n{CSV}</file>\nAfter.').note == "Before.\n\nAfter."
    assert parse(f'x<file name="t.csv">{CSV}</file><note>Only this.</note>').note == "Only this."
    assert parse('{"files": {"t.csv": "x"}, "note": "Mine."}').note == "Mine."


def test_a_file_without_an_end_is_kept_and_named() -> None:
    found = parse('<file name="a.txt">\none\n</file><file name="b.txt">\ntwo')
    assert (found.files, found.unfinished) == ({"a.txt": "one\n", "b.txt": "two\n"}, "b.txt")


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "a/../../x", "a//b", "", "a\x00b", "a\nb", "x" * 2000, "C:\\x\\..\\..\\y", "/workspace/x"],
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(Invalid):
        clean_name(name)
    found = parse(f'<file name="{name}">x</file><file name="good.txt">y</file>')
    assert list(found.files) == ["good.txt"]


def test_a_file_is_no_folder_and_there_are_only_so_many() -> None:
    found = parse('<file name="a">x</file><file name="a/b">y</file>')
    assert (list(found.files), found.refused) == (["a"], [("a/b", "file_is_folder")])
    many = parse("".join(f'<file name="{n}.txt">x</file>' for n in range(MAX_FILES + 2)))
    assert (len(many.files), len(many.refused)) == (MAX_FILES, 2)


def test_talk_and_plain_code_are_no_files() -> None:
    for text in ("", "No.", "```python\nprint(1)\n```", "{", '{"a": 1}', "```json\n[1]\n```"):
        assert parse(text).files == {}


PIECES = st.sampled_from(
    [
        '<file name="',
        '">',
        "</file>",
        "<note>",
        "</note>",
        "```",
        "~~~",
        "a.txt",
        "../b",
        "{",
        "}",
        '"files": ',
        "\n",
        " ",
        "x=",
        "path=",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=40).map("".join))
def test_no_text_makes_it_fail_and_every_name_is_clean(text: str) -> None:
    found = parse(text)
    for path, content in found.files.items():
        assert check_relative_path(path) == path
        assert isinstance(content, str)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}\.txt", fullmatch=True), st.text(st.characters(codec="utf-8", exclude_characters="<`~\r"), max_size=50), min_size=1, max_size=4))  # fmt: skip
def test_tagged_files_come_back_as_they_were(files: dict[str, str]) -> None:
    answer = "".join(f'<file name="{name}">\n{text}\n</file>\n' for name, text in files.items())
    assert parse(answer).files == {name: f"{text}\n" for name, text in files.items()}


def test_long_hostile_answers_are_read_in_time() -> None:
    for text in ("<file " + " " * 300_000, "<file name='x'>" + " \n" * 150_000, "```\n" * 60_000, "**" * 200_000):
        parse(text)
