import hashlib
from dataclasses import replace

import pytest

from service.domain.errors import Invalid
from service.scaffolds import prompts
from tests.unit.scaffolds.build import CONTEXT, ref, task
from tests.unit.scaffolds.programs import context


def test_plain_is_the_instruction_as_it_stands() -> None:
    said = prompts.prompt_for(task(), CONTEXT)
    assert said.text == "Do {deadline_unix} it"
    assert said.template_name == "plain@1"
    assert said.template_sha256 == hashlib.sha256(b"{instruction}\n").hexdigest()
    assert said.provenance()["prompt"] == hashlib.sha256(b"Do {deadline_unix} it").hexdigest()


@pytest.mark.parametrize("name", ["jobbench", "jobbench@1"])
def test_jobbench_names_its_folders(name: str) -> None:
    made = task(visible=[ref("task_folder/TASK_INSTRUCTIONS.txt")])
    said = prompts.prompt_for(made, context(None, prompt=name))
    assert "/workspace/task_folder/TASK_INSTRUCTIONS.txt" in said.text
    assert "/workspace/output." in said.text
    assert "{" not in said.text


def test_a_task_without_that_folder_is_the_workspace() -> None:
    assert "/workspace/TASK_INSTRUCTIONS.txt" in prompts.prompt_for(task(), context(None, prompt="jobbench")).text


def test_an_own_template_wins_and_what_is_inserted_is_not_looked_at() -> None:
    where = replace(context(None, prompt="jobbench"), template="{{{output_dir}}} {instruction}\n{visible_files}")
    said = prompts.prompt_for(task(instruction="{sample}", visible=[ref("a b")]), where)
    assert said.text == "{/workspace/output} {sample}\n/workspace/a b"
    assert said.template_name == "own"


@pytest.mark.parametrize(
    ("template", "type_"), [("{nothing}", "unknown_placeholder"), ("{instruction}" * 90, "prompt_too_long")]
)
def test_bad_templates_are_refused(template: str, type_: str) -> None:
    with pytest.raises(Invalid) as error:
        prompts.prompt_for(task(instruction="x" * 100_000), replace(CONTEXT, template=template))
    assert error.value.type == type_


@pytest.mark.parametrize("name", ["none", "plain@2", "plain@", "../plain", "plain@1.md"])
def test_an_unknown_shipped_template_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as error:
        prompts.prompt_for(task(), context(None, prompt=name))
    assert error.value.type == "unknown_template"


def test_every_shipped_template_names_known_placeholders() -> None:
    assert set(prompts.shipped()) >= {"plain@1", "jobbench@1"}
    for name, text in prompts.shipped().items():
        prompts.check(text, where=name)
