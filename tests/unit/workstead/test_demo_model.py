"""The script of the demo's model is one that the scripted provider reads."""

from pathlib import Path

from service.models.scripted.scenario_file import load
from workstead.cli import demo, demo_model


def test_the_script_writes_the_solver_and_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(demo_model.solving(demo.SOLVER))
    (scenario,) = load(path)
    steps = [step for step in scenario.steps if not isinstance(step, list)]
    written = {Path(s.write.path).name: s.write.text for s in steps if s.write is not None}
    assert written == {p.name: p.read_text() for p in demo.SOLVER.glob("*.py")}
    assert steps[-1].run is not None
    assert "solve.py" in steps[-1].run


def test_odd_text_survives(tmp_path: Path) -> None:
    solver = tmp_path / "solver"
    solver.mkdir()
    text = 'x = "\\"\n\t\x7f é € \U0001f600 \\n"\n'
    (solver / "solve.py").write_text(text)
    path = tmp_path / "s.toml"
    path.write_text(demo_model.solving(solver))
    written = [s.write.text for s in load(path)[0].steps if not isinstance(s, list) and s.write is not None]
    assert written == [text]
