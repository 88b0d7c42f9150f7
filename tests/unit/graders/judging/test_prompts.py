import re
from pathlib import Path

import pytest

from service.domain import placeholders
from service.domain.errors import Invalid
from service.graders.contract import GraderFault
from service.graders.judging.prompts import Shelf
from service.graders.judging.settings import JudgingSettings
from tests.architecture.repository import ROOT

SHIPPED = sorted((ROOT / "service" / "graders").glob("*/prompt_texts/*"))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "one-1.md").write_text("Rules: {rules} {{braces}}\n---- text ----\nData: {data}\n")
    (tmp_path / "one-2.md").write_text("Newer rules: {rules}\n---- text ----\n{data}\n")
    (tmp_path / "notes.txt").write_text("no prompt")
    return Shelf(tmp_path, frozenset({"rules"}), frozenset({"data"}))


def test_a_prompt_is_chosen_by_name_and_version(shelf: Shelf) -> None:
    prompt = shelf.prompt(JudgingSettings(prompt="one@1"))
    question = prompt.question({"rules": "be {data} fair"}, {"data": "{rules}"})
    assert question.system == "Rules: be {data} fair {braces}", "what is inserted is never looked at again"
    assert question.text == "Data: {rules}"
    assert (question.template, question.template_text.startswith("Rules: {rules}")) == ("one@1", True)
    assert shelf.prompt(JudgingSettings(prompt="one@2")).system_side.startswith("Newer")
    with pytest.raises(Invalid, match="no prompt"):
        shelf.prompt(JudgingSettings(prompt="one@3"))
    with pytest.raises(GraderFault):
        shelf.stored(JudgingSettings(prompt="one@3"))


@pytest.mark.parametrize(
    "text",
    [
        "{rules} {data}",
        "{rules}{data}\n---- text ----\n{data}",
        "{rules}\n---- text ----\nno data",
        "no rules\n---- text ----\n{data}",
        "{rules}\n---- text ----\n{data}{rules}",
        "{rules}\n---- text ----\n{data}\n---- text ----\n",
        "{rules}{other}\n---- text ----\n{data}",
    ],
)
def test_what_was_delivered_cannot_stand_among_the_rules(shelf: Shelf, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        shelf.prompt(JudgingSettings(prompt_text=text))
    assert caught.value.type == "bad_template"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.name)
def test_shipped_prompts_have_versions_and_ask_for_the_reasoning_first(path: Path) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*-\d+\.md", path.name)
    system, _, text = path.read_text().partition("---- text ----\n")
    assert placeholders.variables(system)
    assert placeholders.variables(text)
    assert "reasoning" in system
