"""The tables that reports, exports and people who analyse read: every column with its type, unit and what null means (NEEDS B23).

Reports read exactly these and nothing else, so that whoever has the files can compute every figure again. In files, times are
RFC 3339 UTC, lists and maps are JSON text, and an unknown value is null: an empty field in CSV.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    DATE = "date"
    JSON = "json"
    """A list or map, as JSON text."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type
    text: str
    """What it is, with its unit where it has one."""
    null: str = ""
    """What null means; empty: it is never null."""


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    text: str
    """What one row is."""
    key: tuple[str, ...]
    columns: tuple[Column, ...]


T, INT, N, B, AT, J = Type.TEXT, Type.INTEGER, Type.NUMBER, Type.BOOLEAN, Type.TIME, Type.JSON
_UNSEEN = "not known"

_RUNS = Table(
    "runs",
    "One agent on one task, one sample. Altered-work controls are not among them unless asked for.",
    ("run_id",),
    (
        Column("run_id", T, "Id"),
        Column("evaluation_id", T, "Its evaluation", "made outside one"),
        Column("task_id", T, "Its task (table tasks)"),
        Column("agent_id", T, "Its agent (table agents)"),
        Column("sample", INT, "Which repetition, from 1"),
        Column("attempts", INT, "Attempts; more than one only where infrastructure failed"),
        Column("derived_from", T, "Run that it was made from", "none"),
        Column("phase", T, "Phase"),
        Column("outcome", T, "graded, abstained, ungraded, cancelled or invalidated", "not done"),
        Column("ended_because", T, "Why the agent phase ended", "it has not"),
        Column("flags", J, "Everything that changes a comparison, as a list"),
        Column("plan", T, "Primary grading plan, name@version"),
        Column("verdict_state", T, "State of the primary verdict"),
        Column("score", N, "Score of the primary verdict", "no grader decided"),
        Column("max_score", N, "Most that could be had", "no grader decided"),
        Column("fraction", N, "score / max_score", "no grader decided, or max_score is 0"),
        Column("counted", N, "fraction after the benchmark's policies: what tables count", "excluded: see exclusion"),
        Column("exclusion", T, "Why no table counts it", "it is counted"),
        Column("deliverable_digest", T, "sha256 of the sealed deliverable", "nothing was sealed"),
        Column("deliverable_files", INT, "Files delivered"),
        Column("deliverable_bytes", INT, "Their size"),
        Column(
            "deliverable_problems",
            INT,
            "Files that do not open as what they claim to be, and entries that were skipped",
        ),
        Column("queue_s", N, "Seconds in the queue", "not started"),
        Column("provision_s", N, "Seconds until the agent began", "not started"),
        Column("wall_s", N, "Seconds of the agent phase", "not ended"),
        Column("working_s", N, "wall_s less waits for providers and host", "not ended"),
        Column("provider_wait_s", N, "Seconds waited for providers"),
        Column("turns", INT, "Turns of the agent"),
        Column("tool_calls", INT, "Tool calls of the agent"),
        Column("events", INT, "Lines of its event log"),
        Column("requests", INT, "Model requests of the graded attempt"),
        Column("input_tokens", INT, "Input tokens"),
        Column("cached_input_tokens", INT, "Of these, read from the provider's cache"),
        Column("cache_write_tokens", INT, "Of these, written to it"),
        Column("output_tokens", INT, "Output tokens"),
        Column("reasoning_tokens", INT, "Of these, reasoning"),
        Column("cost_usd", N, "Dollars of the graded attempt: models", "not known"),
        Column("cost_basis", T, "measured, declared or unknown", "nothing was asked"),
        Column("service_cost_usd", N, "Dollars of the graded attempt: gateway services", "none, or not known"),
        Column("cost_usd_all_attempts", N, "Dollars of all attempts, models and services", "not known"),
        Column("created_at", AT, "Submitted"),
        Column("started_at", AT, "Agent phase began", "not started"),
        Column("ended_at", AT, "Agent phase ended", "not ended"),
        Column("graded_at", AT, "Primary verdict decided", "not decided"),
        Column("labels", J, "Labels, a map"),
    ),
)

_AGENTS = Table(
    "agents",
    "What is measured: scaffold, model and settings.",
    ("agent_id",),
    (
        Column("agent_id", T, "Id"),
        Column("label", T, "Short unique label; in public exports its alias where it has one"),
        Column("digest", T, "sha256 of scaffold, model and settings"),
        Column("scaffold", T, "name@version"),
        Column("kind", T, "Kind of the scaffold"),
        Column("driver", T, "Who drives: kit, loop, remote, person or external"),
        Column("model", T, "Name in the catalogue", "an agent without a model"),
        Column("provider", T, "Of the model", "no model"),
        Column("vendor", T, "Who makes the model", _UNSEEN),
        Column("family", T, "Family of the model", _UNSEEN),
        Column("released_on", Type.DATE, "Day on which the model was released", _UNSEEN),
        Column("alias", B, "Whether the provider may put another model behind the name", "no model"),
        Column("effort", T, "Reasoning effort", "default"),
        Column("settings", J, "All settings, a map"),
    ),
)

_TASKS = Table(
    "tasks",
    "One item of the benchmark, or one task of an evaluation without one.",
    ("task_id",),
    (
        Column("task_id", T, "Id"),
        Column("name", T, "Name"),
        Column("digest", T, "sha256 of the whole bundle: its version"),
        Column("item_key", T, "Key in the benchmark's source", "no benchmark"),
        Column("status", T, "ok, disputed or quarantined", "no benchmark"),
        Column("check", T, "ok, suspect or broken, by the benchmark's check", "not checked"),
        Column("facets", J, "Facets: a map of text, number or list of texts"),
        Column("price_usd", N, "What the work is worth in dollars", _UNSEEN),
        Column("price_basis", T, "posted, midpoint, reported, estimated or imputed", "no price"),
        Column("human_time_s", N, "Seconds that a person took", _UNSEEN),
    ),
)

_VERDICTS = Table(
    "verdicts",
    "One grading of one deliverable: a method under a plan, one round.",
    ("grading_id",),
    (
        Column("grading_id", T, "Id"),
        Column("run_id", T, "Whose deliverable"),
        Column("method", T, "Grading method"),
        Column("method_version", T, "Its version"),
        Column("settings_digest", T, "sha256 of its settings, judges and prompts included"),
        Column("plan", T, "Plan that asked for it, name@version"),
        Column("primary", B, "Whether it counts for the run's verdict under that plan"),
        Column("round", INT, "Round, from 1"),
        Column("state", T, "pending, grading, graded, abstained or failed"),
        Column("score", N, "Score", "not graded"),
        Column("max_score", N, "Most that could be had", "not graded"),
        Column("cause", T, "Why it failed or abstained", "it did not"),
        Column("overridden", B, "A person's score stands in its place"),
        Column("cost_usd", N, "Dollars of the judges", _UNSEEN),
        Column("detail", J, "The method's own summary, a map"),
        Column("graded_at", AT, "When it was decided", "not decided"),
    ),
)

_CRITERIA = Table(
    "criteria",
    "One criterion, test case or question of one verdict.",
    ("grading_id", "position"),
    (
        Column("grading_id", T, "Verdict (table verdicts)"),
        Column("run_id", T, "Whose deliverable"),
        Column("position", INT, "Place in the method's own order, from 0"),
        Column("criterion", T, "The method's id: rubric.criterion, test number, field"),
        Column("passed", B, "Whether it holds", "not decided"),
        Column("score", N, "Points", "not decided"),
        Column("max_score", N, "Points that could be had", "it gives none"),
        Column("detail", J, "Cause of a failed test, weight of a rubric and the like, a map"),
    ),
)

_ATTEMPTS = Table(
    "attempts",
    "One attempt of a run. A further one exists only because infrastructure failed: it is no sample.",
    ("run_id", "attempt"),
    (
        Column("run_id", T, "Its run"),
        Column("attempt", INT, "Number, from 1"),
        Column("state", T, "State; released and lost are ends"),
        Column("host", T, "Machine that it was on", "left out of this export"),
        Column("runtime", T, "Container runtime", "not bound"),
        Column("environment_image", T, "Image of the task's environment, by content", "not bound"),
        Column("kit_image", T, "Image of the scaffold's programs, by content", "it has none"),
        Column("ended_because", T, "Why it ended", "it has not"),
        Column("prompt_template_sha256", T, "Digest of the prompt's template", "no prompt of ours"),
        Column("prompt_sha256", T, "Digest of the prompt as it was sent", "no prompt of ours"),
        Column("effort", T, "Reasoning effort that was really asked for", "nothing was"),
        Column("created_at", AT, "Claimed"),
        Column("started_at", AT, "Agent phase began", "not started"),
        Column("ended_at", AT, "Agent phase ended", "not ended"),
    ),
)

_VOTES = Table(
    "votes",
    "One opinion of one judge model.",
    ("grading_id", "judge", "item", "n"),
    (
        Column("grading_id", T, "Verdict that it is for (table verdicts)"),
        Column("run_id", T, "Whose deliverable"),
        Column("judge", T, "Key of the judge: model and settings"),
        Column("item", T, "What it is about within the grading; empty: the whole"),
        Column("n", INT, "Which vote on the item, from 1"),
        Column("state", T, "valid or invalid"),
        Column("cause", T, "Why it is no opinion", "it is one"),
        Column("asks", INT, "How often the judge was asked until it answered in form"),
        Column("model", T, "Model, as the provider reports it", "not reported"),
        Column("template", T, "Prompt's template, name@version"),
        Column("template_sha256", T, "Its digest", "none"),
        Column("rendered_sha256", T, "Digest of what was asked", "not kept"),
        Column(
            "content", J, "The answer, a map; its words, which quote hidden assets, for those only who may read these"
        ),
        Column("input_tokens", INT, "Input tokens", "the provider did not say"),
        Column("output_tokens", INT, "Output tokens", "the provider did not say"),
        Column("took_s", N, "Seconds", _UNSEEN),
        Column("created_at", AT, "When it was written"),
    ),
)

_RATINGS = Table(
    "ratings",
    "One rating that a person (or a model in a campaign) submitted.",
    ("rating_id",),
    (
        Column("rating_id", T, "Id"),
        Column("campaign_id", T, "Its campaign"),
        Column("form", T, "human_panel or pairwise"),
        Column("item_id", T, "Item of the campaign"),
        Column("task_id", T, "Task"),
        Column("run_id", T, "Run that was rated; of a pair the first"),
        Column("other_run_id", T, "Second of the pair", "the human reference, or no pair"),
        Column("rater", T, "The rater's pseudonym"),
        Column("by_model", B, "A model rated"),
        Column("purpose", T, "rating, second_pass, adjudication, audit or gold"),
        Column("rating", INT, "1 not acceptable, 2 as good as the reference, 3 better", "pairwise"),
        Column("accept", B, "Whether a reasonable client would accept it", "pairwise"),
        Column("failed_early", B, "A critical flaw ended the reading", "pairwise"),
        Column("completion", T, "first, same or second is closer to the brief", "human_panel"),
        Column("quality", T, "first, same or second is better work", "human_panel"),
        Column("tags", J, "Failure tags, a list"),
        Column("reason", T, "In the rater's words", "none"),
        Column("swapped", B, "The second was shown first"),
        Column("active_s", N, "Seconds at work"),
        Column("instruction_version", INT, "Version of the instruction that was read", _UNSEEN),
        Column("submitted_at", AT, "When"),
    ),
)

_PREFERENCES = Table(
    "preferences",
    "What the opinions on one pair of deliverables of one task come to.",
    ("preference_id",),
    (
        Column("preference_id", T, "Id: of a campaign's preference, or of a judge's grading"),
        Column("source", T, "people or judges"),
        Column("campaign_id", T, "Campaign", "judges"),
        Column("task_id", T, "Task"),
        Column("first_run_id", T, "First deliverable's run"),
        Column("second_run_id", T, "Second's", "the human reference"),
        Column("first_agent_id", T, "First deliverable's agent"),
        Column("second_agent_id", T, "Second's", "the human reference"),
        Column("value", N, "What it gives the first: 1, 0.5 or 0"),
        Column("combination", T, "Rule that made one choice of two scales"),
        Column("choices", J, "The opinions, a list; or of judges, by judge"),
        Column("created_at", AT, "When it was decided"),
    ),
)

_MODEL_REQUESTS = Table(
    "model_requests",
    "One request to a model, as the gateway saw it: of an agent, of a simulated client, or of a judge of its deliverable.",
    ("request_id",),
    (
        Column("request_id", T, "Id"),
        Column("run_id", T, "Run that it was for; of a judge, whose deliverable"),
        Column("attempt", INT, "Attempt", "no agent's request"),
        Column("n", INT, "Number within the run", "no agent's request"),
        Column("purpose", T, "agent, client, judge or check"),
        Column("grading_id", T, "Verdict that the judge was asked for", "no judge's request"),
        Column("model", T, "Name in the catalogue", "the model was deleted"),
        Column("provider", T, "Provider", _UNSEEN),
        Column("requested_model", T, "Id that was asked for", _UNSEEN),
        Column("reported_model", T, "Id that answered", "not reported"),
        Column("state", T, "started or finished"),
        Column("status", INT, "HTTP status that the client got", "it went away before"),
        Column("error", T, "Typed cause of a failure", "none"),
        Column("provider_error", B, "Whether the failure was the provider's"),
        Column("tries", INT, "How often the gateway asked"),
        Column("input_tokens", INT, "Input tokens"),
        Column("cached_input_tokens", INT, "Further input tokens, read from the provider's cache"),
        Column("cache_write_tokens", INT, "Further input tokens, written to it"),
        Column("output_tokens", INT, "Output tokens"),
        Column("reasoning_tokens", INT, "Of these, reasoning"),
        Column("usage_known", B, "Whether the provider said what it took; else the tokens are 0"),
        Column("cost_usd", N, "Dollars", "no price, or usage not known"),
        Column("cost_basis", T, "measured, declared or unknown"),
        Column("server_tools", J, "Provider-side tool → uses, a map"),
        Column("finish_reason", T, "In the provider's words", _UNSEEN),
        Column("first_token_s", N, "Seconds to the first token", _UNSEEN),
        Column("total_s", N, "Seconds in all", "not finished"),
        Column("wait_s", N, "Seconds that the gateway waited for the provider"),
        Column("created_at", AT, "When it was made"),
    ),
)

_TOOL_CALLS = Table(
    "tool_calls",
    "One tool call in a run's event log.",
    ("run_id", "seq"),
    (
        Column("run_id", T, "Its run"),
        Column("seq", INT, "Number of the call's event"),
        Column("attempt", INT, "Attempt"),
        Column("call_id", T, "Id that the agent gave it", "none"),
        Column("name", T, "Tool", _UNSEEN),
        Column("at", AT, "When it was called"),
        Column("result_seq", INT, "Number of its result's event", "no result was seen"),
        Column("is_error", B, "Whether the tool failed", "no result was seen, or it does not say"),
        Column("took_s", N, "Seconds until the result", "no result was seen"),
    ),
)

_EXCLUSIONS = Table(
    "exclusions",
    "One run that no table counts, and why; controls and runs of preflights are among them only where they were asked for.",
    ("run_id",),
    (
        Column("run_id", T, "Run"),
        Column("evaluation_id", T, "Its evaluation", "made outside one"),
        Column("task_id", T, "Its task"),
        Column("agent_id", T, "Its agent"),
        Column("exclusion", T, "Why, as in table runs"),
        Column("reason", T, "In words: of an invalidation, its author's", "nothing beyond the exclusion"),
        Column("author", T, "Who invalidated it", "it follows from the run"),
        Column("at", AT, "When it was invalidated", "it follows from the run"),
    ),
)

_FORECASTS = Table(
    "forecasts",
    "One forecast of one task: recorded beforehand or not, by a model of the catalogue or imported.",
    ("forecast_id",),
    (
        Column("forecast_id", T, "Id"),
        Column("set_id", T, "Its forecast set"),
        Column("set_name", T, "The set's name"),
        Column("agent_id", T, "Whose work it is about", "the set is about no agent in particular"),
        Column("task_id", T, "About which task"),
        Column("forecaster", T, "Key: model#digest of its settings; of imported ones as their maker calls it"),
        Column("prompt", T, "Key: variant, +reason, @system"),
        Column("variant", T, "generic, limits, drop_1 … only_6, placebo or misstated", "imported"),
        Column("with_reason", B, "Whether a reason was asked for", "imported"),
        Column("system", T, "System message: neutral or tools", "imported"),
        Column("model", T, "Name in the catalogue; of imported ones what their maker says", _UNSEEN),
        Column("reported_model", T, "Model as the provider calls it", "imported, or no answer"),
        Column("source", T, "asked or imported"),
        Column("state", T, "ok, excluded (no answer fitted) or failed (it could not be asked)"),
        Column("p_hat", N, "Probability of acceptance, 0 to 1", "not ok"),
        Column("context_dependence", INT, "1 to 5", "not said"),
        Column("verifiability", INT, "1 to 5", "not said"),
        Column("autonomy_horizon", INT, "1 to 5", "not said"),
        Column("tool_credential_surface", INT, "0 to 3", "not said"),
        Column("deliverable_modality", INT, "1: an artefact can be handed over; 0: not", "not said"),
        Column("reason", T, "The forecaster's reason", "none was asked for, or left out"),
        Column("asks", INT, "Questions that it took; 0 of imported and failed ones"),
        Column("cause", T, "Why it is excluded or failed", "it is ok"),
        Column("template_sha256", T, "sha256 of the template", "imported"),
        Column("rendered_sha256", T, "sha256 of JSON {system, text} that was asked", "imported, failed, or left out"),
        Column("usage", J, "Tokens of all its answers, a map", _UNSEEN),
        Column("cost_usd", N, "Dollars of all its answers", _UNSEEN),
        Column("declared_at", AT, "When an imported one was made, as its maker says", "not imported, or not said"),
        Column("made_at", AT, "When it was recorded here"),
        Column("first_attempt_at", AT, "When the agent first began on the task", "it has not, or there is no agent"),
        Column("made_before_attempt", B, "made_at < first_attempt_at", "there is no attempt"),
    ),
)

_EMBEDDINGS = Table(
    "embeddings",
    "The vector of one task's text by one model: what a baseline of forecasts knows of the text.",
    ("task_id", "model", "asked_dimensions"),
    (
        Column("task_id", T, "Task"),
        Column("model", T, "Name in the catalogue"),
        Column("asked_dimensions", INT, "Numbers that were asked for; 0: the model's own"),
        Column("reported_model", T, "Model as the provider calls it", "not reported"),
        Column("text_sha256", T, "sha256 of the text that was sent"),
        Column("vector", J, "A list of numbers"),
        Column("operation_id", T, "Operation that made it"),
        Column("made_at", AT, "When it was recorded"),
    ),
)

TABLES: Mapping[str, Table] = {
    t.name: t
    for t in (
        _RUNS, _ATTEMPTS, _AGENTS, _TASKS, _VERDICTS, _CRITERIA, _VOTES, _RATINGS, _PREFERENCES, _MODEL_REQUESTS,
        _TOOL_CALLS, _EXCLUSIONS, _FORECASTS, _EMBEDDINGS,
    )
}  # fmt: skip
