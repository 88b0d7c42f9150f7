from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.run_states import ExitReport
from service.scaffolds import registry
from service.scaffolds.command.scaffold import CommandScaffold
from service.scaffolds.contract import Plan
from service.scaffolds.programs import MAX_ARGUMENT_BYTES
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, ref, task


def plan(**fields: Any) -> Plan:
    m = manifest(**fields)
    registry.check(m)
    return CommandScaffold().plan(task(), AGENT, m, CONTEXT)


def test_templates_are_replaced_once_and_each_stays_one_argument() -> None:
    got = plan(
        argv=["run", "{instruction}", "--n={sample}", "{workspace};{output_dir} {instruction_file}", "{seconds_left}"]
    )
    assert got.argv == [
        "run", "Do {deadline_unix} it", "--n=2", "/workspace;/workspace/output /workspace/.home/instruction.md", "90",
    ]  # fmt: skip


def test_doubled_braces_stand_for_braces() -> None:
    assert plan(argv=["awk", "{{print}} {{{sample}}}", "a{1}b{}"]).argv == ["awk", "{print} {2}", "a{1}b{}"]


@pytest.mark.parametrize("text", ["{secret}", "{sample.__class__}{x}", "{instruction!r}{run_token}", "${HOME}"])
def test_unknown_variables_are_refused_at_registration(text: str) -> None:
    for fields in ({"argv": ["x", text]}, {"argv": ["x"], "env": {"A": text}}):
        with pytest.raises(Invalid) as caught:
            registry.check(manifest(**fields))
        assert caught.value.type == "unknown_template_variable"


@pytest.mark.parametrize("text", ["{sample.__class__}", "{sample!r}", "{sample:>10}", "{0}", "{sample[0]}"])
def test_format_strings_mean_nothing(text: str) -> None:
    assert plan(argv=["x", text]).argv == ["x", text]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"argv": []}, "argv_missing"),
        ({"argv": ["a\0b"]}, "nul_in_template"),
        ({"argv": ["a"], "env": {"WORKSTEAD_RUN_TOKEN": "x"}}, "reserved_environment_name"),
        ({"argv": ["a"], "env": {"A=B": "x"}}, "bad_environment_name"),
        ({"argv": ["a"], "files": [{"path": "p", "sha256": "a" * 64, "size_bytes": 1}] * 2}, "duplicate_path"),
    ],
)
def test_manifests_that_cannot_be_planned_are_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(Invalid) as caught:
        registry.check(manifest(**fields))
    assert caught.value.type == problem


def test_the_prompt_arrives_by_argument_stdin_or_file() -> None:
    assert plan(argv=["a"], prompt="argument").argv == ["a", "Do {deadline_unix} it"]
    assert plan(argv=["a", "-p={instruction}"], prompt="argument").argv == ["a", "-p=Do {deadline_unix} it"]
    assert plan(argv=["a"], prompt="stdin").stdin == b"Do {deadline_unix} it"
    got = plan(argv=["a"], prompt="file")
    assert (got.argv, got.stdin) == (["a"], b"")


def test_an_instruction_too_long_for_an_argument_is_refused_in_words() -> None:
    m = manifest(argv=["a", "{instruction}"])
    with pytest.raises(Invalid) as caught:
        CommandScaffold().plan(task(instruction="x" * (MAX_ARGUMENT_BYTES + 1)), AGENT, m, CONTEXT)
    assert caught.value.type == "argument_too_long"


def test_files_land_below_the_kit_folder_and_are_programs() -> None:
    got = plan(argv=["a"], files=[ref("bin/solve.py").model_dump()])
    assert [(f.path, f.mode) for f in got.files] == [(".home/kit/bin/solve.py", 0o755)]
    assert not got.reference_solution


def test_the_environment_is_ours_plus_the_manifests() -> None:
    env = plan(argv=["a"], env={"PATH": "/x", "N": "{sample}"}).env
    assert (env["PATH"], env["N"], env["HOME"]) == ("/x", "2", "/workspace/.home")
    assert env["WORKSTEAD_DEADLINE_UNIX"] == "1800000000"


@pytest.mark.parametrize(
    ("code", "signal", "codes", "completed"),
    [
        (0, None, [0], True),
        (3, None, [0, 3], True),
        (1, None, [0], False),
        (None, 9, [0], False),
        (137, None, [0], False),
    ],
)
def test_the_outcome_rule(code: int | None, signal: int | None, codes: list[int], completed: bool) -> None:
    m = manifest(argv=["a"], outcome={"exit_codes": codes})
    assert CommandScaffold().completed(ExitReport(code, signal, 1.0, None), m, None) is completed
