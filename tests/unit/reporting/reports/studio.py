"""A small evaluation of the Remote Labor Index, for tests."""

from datetime import date

from tests.unit.reporting.reports.world import World


def studio() -> World:
    """Two agents on four projects; ``a`` has one accepted, ``b`` delivered nothing on one."""
    w = World()
    w.agent("agent_a", label="A", released_on=date(2026, 2, 1))
    w.agent("agent_b", label="B", released_on=None)
    for n, price in enumerate((200.0, 1000.0, 50.0, None), 1):
        w.task(f"p{n}", price_usd=price, human_time_s=None if price is None else price * 36)
    for n in range(1, 5):
        run = w.run("agent_a", f"p{n}", 1.0 if n == 1 else 0.0, cost_usd=3.0, cost_basis="measured")
        for rater, rating in (("r1", 3 if n == 1 else 1), ("r2", 2 if n == 1 else 1)):
            rate(w, run, rater, rating)
        w.run("agent_b", f"p{n}", 0.0, flags=["no_deliverable"] if n == 4 else [])
    return w


def rate(w: World, run: str, rater: str, rating: int, **values: object) -> None:
    n = len(w.rows["ratings"])
    tags = [] if rating > 1 else ["incomplete"]
    plain = {"form": "human_panel", "item_id": f"item_{run}", "purpose": "rating", "active_s": 600.0 + n, "tags": tags}
    w.add(
        "ratings", rating_id=f"rt_{n:04}", run_id=run, rater=rater, rating=rating, accept=rating > 1, **(plain | values)
    )


def prefer(
    w: World, task: str, value: float, first: str = "agent_a", second: str | None = "agent_b", **values: object
) -> None:
    runs = {(r["agent_id"], r["task_id"]): r["run_id"] for r in w.rows["runs"]}
    plain = {
        "preference_id": f"pref_{len(w.rows['preferences']):04}",
        "source": "people",
        "task_id": task,
        "first_run_id": runs[first, task],
        "second_run_id": None if second is None else runs[second, task],
    }
    w.add("preferences", first_agent_id=first, second_agent_id=second, value=value, **(plain | values))
