"""Which table is computed how."""

from collections.abc import Callable

from service.lifecycle.handover.verify_program.beside import (
    against_reference,
    changed_tasks,
    comparison,
    covariate,
    judge_comparison,
    main_table,
)
from service.lifecycle.handover.verify_program.forecasts import (
    annotation_regression,
    baselines,
    family_residual,
    forecast_protocol,
    forecasters,
    judge_labels,
    prompt_ablations,
    top_shares,
)
from service.lifecycle.handover.verify_program.general import (
    cost_against_score,
    effort_sweep,
    ends,
    exclusions,
    failure_causes,
    jobbench_scores,
    pass_at_k,
    results,
    scaffold_deltas,
)
from service.lifecycle.handover.verify_program.jobs import (
    acceptance,
    criterion_rates,
    people_and_judge,
    readings,
    rejection_causes,
    repeat_attempts,
    tool_agent,
)
from service.lifecycle.handover.verify_program.labor import (
    autoflation,
    evaluation_time_histogram,
    evaluation_times,
    failure_tags,
    price_and_time,
    rater_agreement,
    rli_elo,
    rli_elo_edges,
)
from service.lifecycle.handover.verify_program.papers import (
    automation_rate,
    complexity,
    cumulative_value,
    earnings,
    freelance_results,
    freelance_tests,
    union_pass_rate,
    wrong_histogram,
)
from service.lifecycle.handover.verify_program.reading import Data, Row

FORMULAS: dict[str, tuple[Callable[[Data, Row], Row], list[str]]] = {
    "results": (results, ["agent"]), "exclusions": (exclusions, ["agent", "exclusion"]), "ends": (ends, ["agent", "ended_because"]),
    "failure_causes": (failure_causes, ["agent", "cause"]), "pass_at_k": (pass_at_k, ["agent", "k"]),
    "cost_against_score": (cost_against_score, ["agent"]), "effort_sweep": (effort_sweep, ["agent"]),
    "scaffold_deltas": (scaffold_deltas, ["first", "second"]), "jobbench_scores": (jobbench_scores, ["agent"]),
    "complexity": (complexity, ["agent", "split"]), "union_pass_rate": (union_pass_rate, []),
    "freelance_results": (freelance_results, ["agent"]), "freelance_tests": (freelance_tests, ["agent"]),
    "wrong_histogram": (wrong_histogram, ["agent", "wrong"]), "earnings": (earnings, ["agent"]),
    "dollars_earned": (earnings, ["agent"]), "cumulative_value": (cumulative_value, ["agent", "done"]),
    "automation_rate": (automation_rate, ["agent"]), "rli_elo": (rli_elo, ["agent"]),
    "rli_elo_edges": (rli_elo_edges, ["first", "second"]), "autoflation": (autoflation, ["on"]),
    "price_and_time": (price_and_time, ["price_usd", "hours"]), "failure_tags": (failure_tags, ["agent", "tag"]),
    "evaluation_times": (evaluation_times, ["form"]), "evaluation_time_histogram": (evaluation_time_histogram, ["form", "from_s"]),
    "rater_agreement": (rater_agreement, ["measure"]),
    "main_table": (main_table, ["agent"]), "judge_comparison": (judge_comparison, ["agent"]), "covariate": (covariate, ["group"]),
    "comparison": (comparison, ["agent"]), "changed_tasks": (changed_tasks, ["agent", "task"]),
    "against_reference": (against_reference, ["agent"]), "acceptance": (acceptance, ["agent", "by", "group"]),
    "criterion_rates": (criterion_rates, ["agent", "criterion"]),
    "rejection_causes": (rejection_causes, ["agent", "cause", "label"]), "repeat_attempts": (repeat_attempts, ["agent"]),
    "tool_agent": (tool_agent, ["group"]), "forecasters": (forecasters, ["agent", "forecaster", "prompt"]),
    "top_shares": (top_shares, ["agent", "forecaster", "prompt", "share"]),
    "prompt_ablations": (prompt_ablations, ["agent", "forecaster", "prompt"]),
    "forecast_protocol": (forecast_protocol, ["agent", "forecaster", "prompt"]), "baselines": (baselines, ["agent", "baseline"]),
    "annotation_regression": (annotation_regression, ["agent", "term"]), "judge_labels": (judge_labels, ["agent", "label"]),
    "family_residual": (family_residual, ["agent"]),
    "people_and_judge": (people_and_judge, ["agent", "group"]), "readings": (readings, ["agent", "plan"]),
}  # fmt: skip
"""Table → how it is computed, and the columns that name a row."""
NEAR = {"repeat_attempts": 1e-3, "annotation_regression": 1e-6, "forecasters": 1e-7}
"""Table → how near its numbers must come where both sides search for them, relative; elsewhere nine digits."""
