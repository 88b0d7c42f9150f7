"""What a public export keeps of private tasks: what figures need, and nothing that their texts can be made of."""

import json

from service.domain.handover import ExportSpec, Profile
from service.lifecycle.handover.profiles import profiled
from tests.unit.reporting.reports import test_payworthy
from tests.unit.reporting.reports.world import World


def postings() -> World:
    """Two jobs with vectors and forecasts with reasons; the first is private."""
    world = test_payworthy.made()
    for n, task in enumerate(("t000", "t001")):
        facets = json.loads(world.rows["tasks"][n]["facets"]) | {"split": ("private", "public")[n]}
        world.rows["tasks"][n]["facets"] = json.dumps(facets)
        world.add(
            "embeddings", task_id=task, model="small", asked_dimensions=2, vector=[0.5, n], text_sha256=f"{n}" * 64
        )
    for row in world.rows["forecasts"]:
        row["reason"], row["rendered_sha256"] = f"It says: {row['task_id']}.", "a" * 64
    return world


def test_vectors_and_reasons_of_private_tasks_stay_at_home() -> None:
    tables = postings().tables()
    for profile, private in ((Profile.INTERNAL, True), (Profile.REVIEWER, True), (Profile.PUBLIC, False)):
        spec = ExportSpec(evaluation_ids=["eval_1"], profile=profile, kind="payworthy", author="tok_1")
        shown = profiled(tables, spec, []).tables
        assert ("t000" in shown["embeddings"]["task_id"]) is private
        assert "t001" in shown["embeddings"]["task_id"]
        told = dict(shown["forecasts"].select("task_id", "reason").iter_rows())
        assert told["t000"] == ("It says: t000." if private else None)
        assert told["t001"] == "It says: t001."
        assert shown["forecasts"].height == tables["forecasts"].height  # their numbers are figures
