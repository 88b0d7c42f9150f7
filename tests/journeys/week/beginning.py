"""Monday and Tuesday: the set comes in and is checked; an evaluation is drafted, estimated, tried out and started."""

from pathlib import Path

from tests.journeys.week import office
from tests.journeys.week.lead import Lead

SMALL = {"memory_bytes": 268435456, "disk_bytes": 67108864, "cpus": 0.5, "wall_clock_s": 900}
MODELS = {
    "lab/judge": "judge",
    "lab/strict": "strict",
    "lab/quill": "quill",
    "lab/pencil": "pencil",
    "lab/wrench": "worker",
    "lab/quil": "unknown-model",
}
"""Model → what its provider says; the last one is a slip of the pen."""
AGENTS = ("archivist", "careful", "hasty", "writer", "drafter", "worker")
FULL, MOST, LEAST = 1.0, 0.75, 0.25
SCORES = {"archivist": FULL, "careful": FULL, "hasty": LEAST, "writer": FULL, "drafter": MOST, "worker": FULL}
TASKS, SAMPLES = len(office.JOBS), 2
RUNS = len(AGENTS) * TASKS * SAMPLES
SPEC = """\
name: week 48
benchmark: office
agents:
  - {{scaffold: reference@1, label: archivist}}
  - {{scaffold: careful@1, label: careful}}
  - {{scaffold: hasty@1, label: hasty}}
  - {{scaffold: single-response, model: {writer}, label: writer}}
  - {{scaffold: single-response, model: lab/pencil, label: drafter}}
  - {{scaffold: tool-agent, model: lab/wrench, label: worker}}
samples: 2
seed: 7
run:
  budget: {{provider_patience_s: {patience_s}}}
budget: {{agents_usd: "5", judges_usd: "5"}}
concurrency: {{agents: {{writer: 0, drafter: 0, worker: 0}}}}
labels: {{week: "48"}}
notes: The models begin once the programs have.
"""


def monday(lead: Lead) -> None:
    """Models with their keys; the set, imported and found sound."""
    for scenario in scenarios():
        lead.provider.add(scenario)
    for name, scenario in MODELS.items():
        entry = lead.folder / "model.toml"
        entry.write_text(
            f'name = "{name}"\nprovider = "lab"\nupstream_id = "claude-sonnet-4-6"\ndialect = "anthropic"\n'
            f'base_url = "{lead.provider.url}"\nprices = {{input_usd = "1", output_usd = "4", as_of = "2026-11-01"}}\n'
        )
        lead.tell("models", "add", entry)
        lead.key(name, scenario)
    options = {**SMALL, "judge": "lab/judge"}
    pairs = [part for name, value in options.items() for part in ("-O", f"{name}={value}")]
    table = office.write_set(lead.folder / "set")
    said = lead.tell("benchmarks", "import", "rows", table, "--name", "office", *pairs, "--json").body
    assert said["validation"]["counts"] == {"ok": TASKS, "disputed": 0, "quarantined": 0}, said
    checks = lead.tell("benchmarks", "check", "office", "--json").bodies
    assert {(check["key"], check["state"], check["oracle"], check["nop"]) for check in checks} == {
        (job.key, "ok", "passed", "failed") for job in office.JOBS
    }, checks
    (lead.folder / "kit").mkdir()
    for manifest in office.write_scaffolds(lead.folder / "kit"):
        lead.tell("scaffolds", "register", manifest)


def scenarios() -> list[office.Scenario]:
    judges = [office.judge("judge"), office.judge("strict", strict=True)]
    return [*judges, office.author("quill", 2), office.author("pencil", 1), office.worker(), office.refusing()]


def tuesday(lead: Lead, patience_s: float) -> None:
    """A name that is none is refused at once, a model that the provider does not have by the preflight; then it starts."""
    said = lead.tell("eval", "plan", write(lead, "lab/quilll", patience_s), code=1)
    assert "lab/quilll" in said.out + said.err, said
    assert lead.tell("eval", "list", "--json").bodies == [], "what is refused leaves nothing"

    slip = lead.tell("eval", "plan", write(lead, "lab/quil", patience_s), "--json").body
    assert (slip["state"], slip["estimate"]["runs"]) == ("draft", RUNS), slip
    said = lead.tell("eval", "start", slip["id"], code=1)
    (told,) = [line for line in said.out.splitlines() if "HTTP 404" in line]
    assert told.startswith("writer: "), said.out
    assert "lab/quil" in told, said.out
    draft = lead.client.evaluations.get(slip["id"])
    assert (draft.state, draft.total) == ("draft", 0)
    lead.client.evaluations.delete(slip["id"])

    drafted = lead.tell("eval", "plan", write(lead, "lab/quill", patience_s), "--json").body
    lead.evaluation = drafted["id"]
    shown = lead.tell("eval", "show", lead.evaluation).out
    assert str(RUNS) in shown, shown
    lead.tell("eval", "start", lead.evaluation, "--detach")
    lead.until("the preflight is through", lambda: lead.now.state == "running")
    begun = lead.now
    assert begun.total == RUNS
    assert (begun.preflight or {}).get("ok") is True, begun.preflight
    assert {agent.label: agent.total for agent in begun.agents} == dict.fromkeys(AGENTS, TASKS * SAMPLES)


def write(lead: Lead, writer: str, patience_s: float) -> Path:
    path = lead.folder / "week.yaml"
    path.write_text(SPEC.format(writer=writer, patience_s=patience_s))
    return path
