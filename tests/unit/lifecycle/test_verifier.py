"""The verifier that goes into exports: one file, nothing of ours, no package but numpy."""

import ast
import sys
from pathlib import Path
from typing import Any

from service.domain.benchmarks import Policies
from service.domain.counting import Facts, counted
from service.domain.run_states import EndedBecause, Flag, Outcome
from service.lifecycle.handover.verifier import PARTS, program
from service.lifecycle.handover.verify_program import comparing
from tests.unit.domain.test_counting import GOOD


def test_it_is_one_program_that_shares_nothing_with_the_service() -> None:
    tree = ast.parse(program())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    assert b"service." not in program()
    named = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == "numpy"]
    assert named == ["numpy"]


def test_names_of_its_parts_do_not_hide_one_another() -> None:
    seen: set[str] = set()
    for part in PARTS:
        module = sys.modules[comparing.__name__.rpartition(".")[0] + f".{part}"]
        assert module.__file__ is not None
        body = ast.parse(Path(module.__file__).read_text()).body
        names = {n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        names |= {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        assert not names & seen
        seen |= names


def test_a_number_agrees_within_its_last_digits_and_nothing_else_does() -> None:
    assert comparing.same(0.1 + 0.2, 0.3)
    assert comparing.same(None, None)
    for said, computed in ((0.3, 0.3001), (1, None), (True, False), ("a", "b"), (None, 0.0), (True, 0)):
        assert not comparing.same(said, computed), (said, computed)


def test_policies_are_the_services_own() -> None:
    for zero in ("zero", "exclude"):
        policies = Policies.model_validate({"no_deliverable": zero, "partial_after_limit": zero})
        for cause in EndedBecause:
            for outcome in Outcome:
                for flag in (*Flag, "none"):
                    run: dict[str, Any] = {
                        **GOOD,
                        "ended_because": str(cause),
                        "outcome": str(outcome),
                        "flags": [str(flag)],
                    }
                    found = counted(Facts(**run), policies)
                    assert comparing.policy_of(run, policies.model_dump()) == (found.value, found.exclusion)
