"""What an author can try without a service; the examples of docs/scaffold-manifests.md."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest

from service.__main__ import main
from service.domain.agents import Driver, ScaffoldManifest
from service.scaffolds import registry
from service.scaffolds.offline import read_manifest
from service.scaffolds.templates import RUN_TOKEN, VARIABLES
from workstead.scaffold_file import read_scaffold_file

PAGE = (Path(__file__).parents[3] / "docs" / "scaffold-manifests.md").read_text()
EXAMPLES = dict(re.findall(r"^\*\*`([^`]+)`\*\*[^\n]*\n```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
OUTPUT = {
    "text-agent.toml": ["agent> hello", "noise", "FINISHED well"],
    "jsonl-agent.toml": [
        '{"type":"assistant","content":[{"text":"hello"}]}', '{"type":"tool","call_id":"1","tool":"sh","input":{"c":"ls"}}',
        '{"type":"tool_output","call_id":"1","output":"a","failed":false}', '{"usage":{"input":3,"output":4}}',
        '{"type":"done","outcome":"success","summary":"well"}',
    ],
    "report-agent.toml": ["{", '  "ok": true, "tokens": {"in": 3, "out": 4}, "cost": 0.5,', '  "payloads": [{"text": "well"}]', "}"],
}  # fmt: skip


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", sorted(OUTPUT))
def test_the_examples_of_the_documentation(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest, log = tmp_path / name, tmp_path / "log"
    manifest.write_text(EXAMPLES[name])
    log.write_text("\n".join(OUTPUT[name]) + "\n")
    assert main(["scaffold", "lint", str(manifest)]) == 0
    assert lines_of(capsys)[0].startswith(f"{name.removesuffix('.toml')}@")
    assert main(["scaffold", "parse", str(manifest), str(log)]) == 0
    events = [json.loads(line) for line in lines_of(capsys)]
    assert events[-1]["payload"]["status"] == "success"
    assert "well" in events[-1]["payload"]["text"]
    assert any(e["type"] == "agent.final" for e in events)
    assert (events[-1]["payload"]["usage"] is not None) == (name != "text-agent.toml")


def test_files_beside_the_manifest_are_read_as_for_registering(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = '[[files]]\npath = "kit/solve.py"\nsource = "solve.py"\n'
    (tmp_path / "one.toml").write_text(f'name = "x"\nversion = "1"\nargv = ["true"]\n{entry}')
    assert main(["scaffold", "lint", str(tmp_path / "one.toml")]) == 2
    assert "solve.py" in capsys.readouterr().err
    (tmp_path / "solve.py").write_text("pass\n")
    assert main(["scaffold", "lint", str(tmp_path / "one.toml")]) == 0
    bundle = read_scaffold_file(tmp_path / "one.toml")
    assert read_manifest(tmp_path / "one.toml") == ScaffoldManifest.model_validate(bundle.manifest)


def test_the_page_names_every_variable_and_kind_of_event() -> None:
    assert set(EXAMPLES) == set(OUTPUT)
    section = PAGE.split("## Variables")[1].split("## ")[0]
    assert set(re.findall(r"`([a-z_.]+)`", section)) - {"argv", "env"} == VARIABLES
    assert f"`{RUN_TOKEN}`" in section


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = 1\nversion = '1'", "/name: Input should be a valid string"),
        ("name = 'x'\nversion = '1'\nargv = ['{nope}']", "names 'nope'"),
        ("name = 'x'\nversion = '1'", "needs argv"),
        ("name = ", "bad.toml:"),
        ("name = 'x'\nversion = '1'\nkind = 'magic'", "no scaffold kind"),
        ("name = 'x'\nversion = '1'\nargv = ['a{run_token}']", "names 'run_token'"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert main(["scaffold", "lint", str(path)]) == 2
    assert said in capsys.readouterr().err
    assert main(["scaffold", "lint", str(tmp_path / "none.toml")]) == 2


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"name": "x", "version": "1", "argv": ["x"]}')
    assert read_manifest(path).name == "x"


def test_a_package_may_bring_a_kind_and_not_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        metadata.EntryPoint("brought", "service.scaffolds.nop.scaffold:NopScaffold", registry.ENTRY_POINTS),
        metadata.EntryPoint("command", "service.scaffolds.nop.scaffold:NopScaffold", registry.ENTRY_POINTS),
    ]

    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        return points if group == registry.ENTRY_POINTS else []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    registry.kinds.cache_clear()
    registry.scaffold_for.cache_clear()
    try:
        assert registry.scaffold_for("brought").driver is Driver.KIT
        assert type(registry.scaffold_for("command")).__name__ == "CommandScaffold"
    finally:
        monkeypatch.undo()
        registry.kinds.cache_clear()
        registry.scaffold_for.cache_clear()
