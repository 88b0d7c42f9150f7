"""From votes to the verdict: a majority on each criterion, then the chain; JobBench's figures beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.judging import Vote, VoteState
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import GraderFault
from service.graders.rubric_chain.rubrics_file import Rubric

NO_EVIDENCE = "no_evidence"
"""Cause of criteria that were not put to a judge, since nothing was delivered."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One rubric and its criteria, as rows of the verdict."""

    rubric: Rubric
    rows: list[dict[str, Any]]
    """The rubric's, then one per criterion."""

    @property
    def passed(self) -> bool:
        return bool(self.rows[0]["passed"])


def item(rubric: Rubric) -> str:
    """Return what votes on the rubric are about."""
    return f"r{rubric.index}"


def decide(rubric: Rubric, votes: Sequence[Vote]) -> Decided:
    """Decide a rubric. A criterion passes where more than half of the valid votes say so.

    Raises GraderFault ``judge_error`` where not more than half of the votes are valid.
    """
    valid = [v for v in votes if v.state is VoteState.VALID]
    if 2 * len(valid) <= len(votes):
        causes = ", ".join(sorted({v.cause or "" for v in votes if v.state is VoteState.INVALID}))
        raise GraderFault("judge_error", f"rubric {rubric.index}: no valid answer ({causes})")
    rows = [_criterion(rubric, c, valid) for c in range(1, len(rubric.criteria) + 1)]
    passed = all(row["passed"] for row in rows)
    telling = next((v for v in valid if v.content["rubric_passed"] is passed), valid[0])
    detail = {"votes": len(votes), "valid_votes": len(valid)}
    return Decided(rubric, [_rubric_row(rubric, rows, telling.content["overall_reasoning"], detail), *rows])


def undelivered(rubric: Rubric) -> Decided:
    """Return the rubric as it is where nothing was delivered that a judge could look at."""
    rows = [
        {
            "id": f"{item(rubric)}.c{c}",
            "score": 0.0,
            "max_score": 0.0,
            "passed": False,
            "cause": NO_EVIDENCE,
            "reason": "nothing was delivered",
            "detail": {"criterion": text},
        }
        for c, text in enumerate(rubric.criteria, 1)
    ]
    row = _rubric_row(rubric, rows, "nothing was delivered", {"votes": 0, "valid_votes": 0})
    return Decided(rubric, [{**row, "cause": NO_EVIDENCE}, *rows])


def verdict(decided: Sequence[Decided], about: Mapping[str, Any]) -> Verdict:
    """Sum up. ``score`` is the weight earned, ``max_score`` all weight."""
    score = sum(float(d.rows[0]["score"]) for d in decided)
    most = sum(d.rubric.weight for d in decided)
    passed, total = sum(d.passed for d in decided), len(decided)
    criteria = [row for d in decided for row in d.rows[1:]]
    detail = {
        "normalized_score": round(score / most, 4),
        "pass_rate": passed / total,
        "passed_count": passed,
        "total_count": total,
        "criteria_passed": sum(bool(row["passed"]) for row in criteria),
        "criteria_count": len(criteria),
        "invalid_votes": sum(d.rows[0]["detail"]["votes"] - d.rows[0]["detail"]["valid_votes"] for d in decided),
    }
    rows = [row for d in decided for row in d.rows]
    return Verdict(VerdictState.GRADED, score=score, max_score=most, criteria=rows, detail={**detail, **about})


def _rubric_row(
    rubric: Rubric, rows: Sequence[Mapping[str, Any]], reason: str, detail: Mapping[str, Any]
) -> dict[str, Any]:
    passed = sum(bool(row["passed"]) for row in rows)
    counts = {"criteria_count": len(rows), "criteria_passed": passed}
    return {
        "id": item(rubric),
        "score": rubric.weight if passed == len(rows) else 0.0,
        "max_score": rubric.weight,
        "passed": passed == len(rows),
        "reason": reason,
        "detail": {"rubric": rubric.text, **counts, **detail},
    }


def _criterion(rubric: Rubric, c: int, valid: Sequence[Vote]) -> dict[str, Any]:
    results = [v.content["criteria_results"][c - 1] for v in valid]
    yes = sum(bool(r["passed"]) for r in results)
    passed = 2 * yes > len(results)
    telling = next(r for r in results if r["passed"] is passed)
    return {
        "id": f"{item(rubric)}.c{c}",
        "score": 0.0,
        "max_score": 0.0,
        "passed": passed,
        "reason": telling["reasoning"],
        "detail": {
            "criterion": rubric.criteria[c - 1],
            "evidence": telling["evidence"],
            "votes_for": yes,
            "votes": len(results),
        },
    }
