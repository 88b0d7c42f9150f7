"""Every operation of the API has a method of the client that calls it; the few without one have a reason."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.architecture.repository import ROOT
from workstead._async.driving import AsyncDrive
from workstead.aio import AsyncClient
from workstead.errors import WorksteadError
from workstead.task_dir import Bundle

OPENAPI: dict[str, Any] = json.loads((ROOT / "api_schema" / "openapi.json").read_text())
Call = Callable[[AsyncClient, Path], Awaitable[object] | AsyncIterator[object]]
SHA = "0" * 64

NOT_FOR_CLIENTS = {
    "healthz": "for whatever restarts the process",
    "metrics": "for Prometheus",
    "log_in": "for browsers: a program sends its token",
    "log_out": "for browsers",
    "join_campaign": "for raters' browsers: a program is a rater by its token",
    "leave_campaign": "for raters' browsers",
    "append_blob": "another way of put_blob, for clients that cannot set Upload-Offset on PUT",
    "mcp_of_run": "for clients of the Model Context Protocol",
    "get_blob": "the bytes of a task's file; a program has them, a person downloads artifacts",
}
CALLS: dict[str, Call] = {
    "readyz": lambda c, _: c.ready(),
    "get_me": lambda c, _: c.me(),
    "list_agents": lambda c, _: c.agents.list(),
    "create_agent": lambda c, _: c.agents.create("s@1"),
    "create_image": lambda c, folder: c.images.upload("mine", folder / "file"),
    "list_images": lambda c, _: c.images.list(),
    "get_image": lambda c, _: c.images.get("img_1"),
    "delete_image": lambda c, _: c.images.delete("img_1"),
    "get_agent": lambda c, _: c.agents.get("agt_1"),
    "list_benchmarks": lambda c, _: c.benchmarks.list(),
    "create_benchmark": lambda c, _: c.benchmarks.create({"items": []}, {}),
    "delete_benchmark": lambda c, _: c.benchmarks.delete("bench_1"),
    "get_benchmark": lambda c, _: c.benchmarks.get("bench_1"),
    "get_benchmark_card": lambda c, _: c.benchmarks.card("bench_1"),
    "label_benchmark": lambda c, _: c.benchmarks.set_labels("bench_1", {}),
    "check_benchmark": lambda c, _: c.benchmarks.set_checks("bench_1", {}),
    "list_benchmark_items": lambda c, _: c.benchmarks.items("bench_1"),
    "probe_judge": lambda c, _: c.judges.probe({"plan": "p@1"}),
    "estimate_judge_probe": lambda c, _: c.judges.estimate_probe({"plan": "p@1"}),
    "list_judge_probes": lambda c, _: c.judges.probes(),
    "get_judge_probe": lambda c, _: c.judges.get_probe("prb_1"),
    "create_forecast_set": lambda c, _: c.forecasts.create({"name": "x"}),
    "list_forecast_sets": lambda c, _: c.forecasts.list(),
    "get_forecast_set": lambda c, _: c.forecasts.get("fcs_1"),
    "start_forecast_set": lambda c, _: c.forecasts.start("fcs_1"),
    "cancel_forecast_set": lambda c, _: c.forecasts.cancel("fcs_1"),
    "list_forecasts": lambda c, _: c.forecasts.rows("fcs_1"),
    "import_forecasts": lambda c, _: c.forecasts.bring("fcs_1", [{"task": "t", "forecaster": "f", "p_hat": 0.5}]),
    "create_annotation_set": lambda c, _: c.annotations.create({"name": "x"}),
    "list_annotation_sets": lambda c, _: c.annotations.list(),
    "get_annotation_set": lambda c, _: c.annotations.get("ans_1"),
    "start_annotation_set": lambda c, _: c.annotations.start("ans_1"),
    "cancel_annotation_set": lambda c, _: c.annotations.cancel("ans_1"),
    "accept_annotation_set": lambda c, _: c.annotations.accept("ans_1"),
    "list_annotations": lambda c, _: c.annotations.rows("ans_1"),
    "list_annotation_values": lambda c, _: c.annotations.values("ans_1"),
    "import_annotations": lambda c, _: c.annotations.bring("ans_1", [{"target": "t", "value": "a"}]),
    "make_embeddings": lambda c, _: c.benchmarks.embed("bench_1", "m"),
    "list_embeddings": lambda c, _: c.benchmarks.embeddings("bench_1"),
    "derive_benchmark": lambda c, _: c.benchmarks.derive("bench_1", "part", "1", {}),
    "create_campaign": lambda c, _: c.campaigns.create({"name": "x"}),
    "list_campaigns": lambda c, _: c.campaigns.list(),
    "get_campaign": lambda c, _: c.campaigns.get("cmp_1"),
    "change_campaign": lambda c, _: c.campaigns.change("cmp_1", name="y"),
    "open_campaign": lambda c, _: c.campaigns.open("cmp_1"),
    "close_campaign": lambda c, _: c.campaigns.close("cmp_1"),
    "scan_campaign": lambda c, _: c.campaigns.scan("cmp_1"),
    "list_campaign_items": lambda c, _: c.campaigns.items("cmp_1"),
    "add_raters": lambda c, _: c.campaigns.add_raters("cmp_1", [{"name": "Ann"}]),
    "list_raters": lambda c, _: c.campaigns.raters("cmp_1"),
    "invite_rater": lambda c, _: c.campaigns.invite("cmp_1", "rtr_1"),
    "remove_rater": lambda c, _: c.campaigns.remove_rater("cmp_1", "rtr_1"),
    "hand_back_item": lambda c, _: c.campaigns.hand_back("cmp_1", "asg_1"),
    "ask_model_raters": lambda c, _: c.campaigns.ask_models("cmp_1"),
    "list_ratings": lambda c, _: c.campaigns.ratings("cmp_1"),
    "list_preferences": lambda c, _: c.campaigns.preferences("cmp_1"),
    "export_campaign": lambda c, folder: c.campaigns.export("cmp_1", folder / "new"),
    "get_rating_session": lambda c, _: c.rating.session("cmp_1"),
    "take_next_item": lambda c, _: c.rating.next("cmp_1"),
    "get_rated_item": lambda c, _: c.rating.get("asg_1"),
    "keep_item": lambda c, _: c.rating.beat("asg_1", 1),
    "submit_rating": lambda c, _: c.rating.submit("asg_1", {"rating": 2}, client_id="1"),
    "skip_item": lambda c, _: c.rating.skip("asg_1", "x"),
    "release_item": lambda c, _: c.rating.release("asg_1"),
    "get_rated_file": lambda c, folder: c.rating.file("asg_1", 0, folder / "new"),
    "get_rated_image": lambda c, folder: c.rating.image("asg_1", 0, folder / "new"),
    "find_missing_blobs": lambda c, _: c.blobs.missing({SHA}),
    "head_blob": lambda c, _: c.blobs.offset(SHA),
    "put_blob": lambda c, folder: c.blobs.upload(folder / "file", SHA),
    "put_small_blobs": lambda c, _: c.blobs.upload_all({SHA: b"x", "1" * 64: b"y"}),
    "create_grading_plan": lambda c, _: c.grading_plans.create("p", {}),
    "get_grading_plan": lambda c, _: c.grading_plans.get("p@1"),
    "list_grading_plans": lambda c, _: c.grading_plans.list(),
    "create_regrade": lambda c, _: c.regrades.create("p@1", runs=["run_1"]),
    "get_regrade": lambda c, _: c.regrades.get("rgr_1"),
    "list_regrades": lambda c, _: c.regrades.list(),
    "start_regrade": lambda c, _: c.regrades.start("rgr_1"),
    "cancel_regrade": lambda c, _: c.regrades.cancel("rgr_1"),
    "contest_grading": lambda c, _: c.reviews.contest("grd_1", "why"),
    "override_grading": lambda c, _: c.reviews.override("grd_1", 1, "why"),
    "list_reviews": lambda c, _: c.reviews.list(),
    "withdraw_review": lambda c, _: c.reviews.withdraw("rvw_1"),
    "list_votes": lambda c, _: c.votes.list("grd_1"),
    "get_rendered_vote": lambda c, _: c.votes.asked("grd_1", "j", 1),
    "export_gradings_csv": lambda c, folder: c.gradings.export(folder / "out"),
    "export_gradings_jsonl": lambda c, folder: c.gradings.export(folder / "out", format="jsonl"),
    "list_all_gradings": lambda c, _: c.gradings.list(),
    "get_grading": lambda c, _: c.gradings.get("grd_1"),
    "list_dead_letter": lambda c, _: c.gradings.dead_letter(),
    "replay_gradings": lambda c, _: c.gradings.replay({"all": True}),
    "cancel_gradings": lambda c, _: c.gradings.cancel_all({"all": True}),
    "cancel_grading": lambda c, _: c.gradings.cancel("grd_1"),
    "export_jobbench": lambda c, _: c.gradings.jobbench("grd_1"),
    "import_jobbench": lambda c, _: c.gradings.import_jobbench("run_1", {}),
    "create_controls": lambda c, _: c.controls.create({"kinds": ["empty"]}),
    "get_controls": lambda c, _: c.controls.get("op_1"),
    "create_grading": lambda c, folder: c.deliverables.grade("task_1", folder),
    "put_deliverable": lambda c, folder: c.deliverables.upload("run_1", folder),
    "pause_run": lambda c, _: c.runs.pause("run_1"),
    "resume_run": lambda c, _: c.runs.resume("run_1"),
    "list_confirmations": lambda c, _: c.runs.confirmations("run_1"),
    "decide_confirmation": lambda c, _: c.runs.confirm("run_1", "cnf_1", "deny"),
    "create_view_ticket": lambda c, _: c.runs.view_ticket("run_1"),
    "get_assignment": lambda c, _: _drive(c).assignment(),
    "claim_run": lambda c, _: _drive(c).__aenter__(),
    "beat_run": lambda c, _: _drive(c).beat(),
    "release_run": lambda c, _: _drive(c).release(),
    "declare_usage": lambda c, _: _drive(c).usage(input_tokens=1),
    "finish_run": lambda c, _: _drive(c).finish(),
    "exec_in_run": lambda c, _: _drive(c).exec(["true"]),
    "message_client": lambda c, _: _drive(c).message("Which year?"),
    "act_on_desktop": lambda c, _: _drive(c).desktop_actions([{"type": "wait"}]),
    "make_film": lambda c, _: c.runs.make_film("run_1"),
    "get_film": lambda c, folder: c.runs.film("run_1", folder / "new"),
    "see_desktop": lambda c, _: c.runs.screenshot("run_1"),
    "get_desktop_picture": lambda c, _: c.runs.picture("run_1", SHA),
    "list_run_files": lambda c, _: _drive(c).list(),
    "read_run_file": lambda c, _: _drive(c).read("a/b"),
    "write_run_file": lambda c, _: _drive(c).write("a/b", b""),
    "get_trajectory": lambda c, _: c.runs.trajectory("run_1"),
    "list_model_requests": lambda c, _: c.runs.model_requests("run_1"),
    "get_service_call_body": lambda c, folder: c.runs.service_call_body("run_1", 1, "request", folder / "body"),
    "list_service_calls": lambda c, _: c.runs.service_calls("run_1"),
    "get_model_request": lambda c, _: c.runs.model_request("run_1", 1),
    "get_model_request_body": lambda c, folder: c.runs.model_request_body("run_1", 1, "request", folder / "body"),
    "check_conformance": lambda c, _: c.scaffolds.check_conformance("s@1"),
    "list_conformance": lambda c, _: c.scaffolds.conformance("s@1"),
    "list_criteria": lambda c, _: c.gradings.criteria("grd_1"),
    "list_hosts": lambda c, _: c.hosts.list(),
    "get_host": lambda c, _: c.hosts.get("a"),
    "change_host": lambda c, _: c.hosts.cordon("a"),
    "drain_host": lambda c, _: c.hosts.drain("a"),
    "list_models": lambda c, _: c.models.list(),
    "list_shipped_scaffolds": lambda c, _: c.scaffolds.shipped(),
    "list_shipped_models": lambda c, _: c.models.shipped(),
    "create_model": lambda c, _: c.models.create({"name": "m"}),
    "get_model": lambda c, _: c.models.get("mdl_1"),
    "replace_model": lambda c, _: c.models.replace("mdl_1", {"name": "m"}),
    "delete_model": lambda c, _: c.models.delete("mdl_1"),
    "put_model_credential": lambda c, _: c.models.put_credential("mdl_1", "k"),
    "get_model_credential": lambda c, _: c.models.credential("mdl_1"),
    "remove_model_credential": lambda c, _: c.models.remove_credential("mdl_1"),
    "check_model": lambda c, _: c.models.check("mdl_1"),
    "list_services": lambda c, _: c.services.list(),
    "create_service": lambda c, _: c.services.create({"name": "s"}),
    "get_service": lambda c, _: c.services.get("svc_1"),
    "replace_service": lambda c, _: c.services.replace("svc_1", {"name": "s"}),
    "delete_service": lambda c, _: c.services.delete("svc_1"),
    "put_service_credential": lambda c, _: c.services.put_credential("svc_1", "k"),
    "get_service_credential": lambda c, _: c.services.credential("svc_1"),
    "remove_service_credential": lambda c, _: c.services.remove_credential("svc_1"),
    "list_breakers": lambda c, _: c.breakers.list(),
    "get_breaker": lambda c, _: c.breakers.get("mdl_1"),
    "set_breaker": lambda c, _: c.breakers.set("mdl_1", "open"),
    "list_operations": lambda c, _: c.operations.list(),
    "get_operation": lambda c, _: c.operations.get("op_1"),
    "cancel_operation": lambda c, _: c.operations.cancel("op_1"),
    "list_projects": lambda c, _: c.projects.list(),
    "create_project": lambda c, _: c.projects.create("p"),
    "get_project": lambda c, _: c.projects.get("prj_1"),
    "change_project": lambda c, _: c.projects.change("prj_1", max_runs=1),
    "list_runs": lambda c, _: c.runs.list(),
    "create_run": lambda c, _: c.runs.create("task_1", "agt_1"),
    "delete_run": lambda c, _: c.runs.delete("run_1"),
    "get_run": lambda c, _: c.runs.get("run_1"),
    "get_archive": lambda c, folder: c.runs.archive("run_1", folder / "new"),
    "list_artifacts": lambda c, _: c.runs.artifacts("run_1"),
    "get_artifact": lambda c, folder: c.runs.download("run_1", "a/b", folder / "new"),
    "list_attempts": lambda c, _: c.runs.attempts("run_1"),
    "get_attempt": lambda c, _: c.runs.attempt("run_1", 1),
    "get_log": lambda c, folder: c.runs.log("run_1", 1, "stdout", folder / "new"),
    "list_run_events": lambda c, _: c.runs.events_page("run_1"),
    "list_gradings": lambda c, _: c.runs.gradings("run_1"),
    "regrade_run": lambda c, _: c.runs.regrade("run_1"),
    "get_contamination": lambda c, _: c.runs.contamination("run_1"),
    "get_integrity": lambda c, _: c.runs.integrity("run_1"),
    "get_evidence": lambda c, _: c.evidence.get("run_1", "output/a.txt"),
    "make_evidence": lambda c, _: c.evidence.make("run_1"),
    "get_evidence_image": lambda c, folder: c.evidence.image("run_1", "0" * 64, folder / "new"),
    "make_integrity": lambda c, _: c.runs.make_integrity("run_1"),
    "stop_run": lambda c, _: c.runs.stop("run_1"),
    "rerun_run": lambda c, _: c.runs.rerun("run_1"),
    "list_scaffolds": lambda c, _: c.scaffolds.list(),
    "register_scaffold": lambda c, _: c.scaffolds.register(Bundle({"name": "s", "version": "1"})),
    "get_scaffold": lambda c, _: c.scaffolds.get("s@1"),
    "list_tasks": lambda c, _: c.tasks.list(),
    "create_task": lambda c, _: c.tasks.create(Bundle({"name": "t"})),
    "make_client_facts": lambda c, _: c.tasks.make_client_facts("task_1"),
    "get_client_facts": lambda c, _: c.tasks.client_facts("task_1"),
    "get_task": lambda c, _: c.tasks.get("task_1"),
    "create_evaluation": lambda c, _: c.evaluations.create({"name": "week"}),
    "list_evaluations": lambda c, _: c.evaluations.list(),
    "get_evaluation": lambda c, _: c.evaluations.get("eval_1"),
    "estimate_evaluation": lambda c, _: c.evaluations.estimate("eval_1"),
    "start_evaluation": lambda c, _: c.evaluations.start("eval_1", 1),
    "stop_evaluation": lambda c, _: c.evaluations.stop("eval_1"),
    "resume_evaluation": lambda c, _: c.evaluations.resume("eval_1"),
    "add_evaluation_agents": lambda c, _: c.evaluations.add_agents("eval_1", [{"agent": "a"}]),
    "retry_evaluation": lambda c, _: c.evaluations.retry("eval_1", because=["sandbox_lost"]),
    "change_evaluation": lambda c, _: c.evaluations.change("eval_1", priority=1),
    "hold_evaluation": lambda c, _: c.evaluations.hold("eval_1"),
    "release_evaluation": lambda c, _: c.evaluations.release("eval_1"),
    "list_evaluation_log": lambda c, _: c.evaluations.log("eval_1"),
    "get_evaluation_matrix": lambda c, _: c.evaluations.matrix("eval_1"),
    "get_evaluation_series": lambda c, _: c.evaluations.series("eval_1", ["done"]),
    "delete_evaluation": lambda c, _: c.evaluations.delete("eval_1"),
    "list_evaluation_tables": lambda c, _: c.evaluations.tables("eval_1"),
    "get_evaluation_table": lambda c, folder: c.reports.table("eval_1", "runs", folder / "new"),
    "get_report": lambda c, _: c.reports.of("eval_1"),
    "make_report": lambda c, _: c.reports.of("eval_1", settings={"seed": 1}),
    "get_plot": lambda c, _: c.reports.plot("eval_1", "success"),
    "make_joint_report": lambda c, _: c.reports.create(["eval_1", "eval_2"]),
    "compare_evaluations": lambda c, _: c.reports.compare(["eval_1", "eval_2"]),
    "make_leaderboard": lambda c, _: c.reports.leaderboard(["eval_1"]),
    "create_publication": lambda c, _: c.publications.create("op_1", "december"),
    "list_publications": lambda c, _: c.publications.list(),
    "get_publication": lambda c, _: c.publications.get("pub_1"),
    "open_publication": lambda c, _: c.publications.open("pub_1"),
    "withdraw_row": lambda c, _: c.publications.withdraw("pub_1", "solver", "a wrong flag"),
    "get_published_report": lambda c, _: c.publications.report("pub_1"),
    "get_published_archive": lambda c, folder: c.publications.download("pub_1", folder / "new"),
    "create_export": lambda c, _: c.exports.create(["eval_1"]),
    "get_export": lambda c, folder: c.exports.download("op_1", folder / "new"),
    "invalidate_runs": lambda c, _: c.many_runs.invalidate({"task_id": ["task_1"]}, "why"),
    "revalidate_runs": lambda c, _: c.many_runs.revalidate({"task_id": ["task_1"]}),
    "stop_runs": lambda c, _: c.many_runs.stop({"task_id": ["task_1"]}),
    "create_run_note": lambda c, _: c.run_notes.create("run_1", "odd"),
    "list_run_notes": lambda c, _: c.run_notes.of_run("run_1"),
    "delete_run_note": lambda c, _: c.run_notes.delete("run_1", "note_1"),
    "search_run_notes": lambda c, _: c.run_notes.search(tag="odd"),
    "list_changes": lambda c, _: c.changes(),
    "create_ticket": lambda c, _: c.tickets.create("/v1/changes"),
    "list_webhooks": lambda c, _: c.webhooks.list(),
    "create_webhook": lambda c, _: c.webhooks.create("https://x", ["*"]),
    "delete_webhook": lambda c, _: c.webhooks.delete("whk_1"),
    "get_webhook": lambda c, _: c.webhooks.get("whk_1"),
    "change_webhook": lambda c, _: c.webhooks.change("whk_1", enabled=True),
    "list_deliveries": lambda c, _: c.webhooks.deliveries("whk_1"),
    "redeliver": lambda c, _: c.webhooks.redeliver("whk_1", "msg_1"),
    "rotate_webhook": lambda c, _: c.webhooks.rotate("whk_1"),
    "test_webhook": lambda c, _: c.webhooks.test("whk_1"),
    "list_tokens": lambda c, _: c.tokens.list(),
    "create_token": lambda c, _: c.tokens.create(["runs:read"]),
    "revoke_token": lambda c, _: c.tokens.revoke("tok_1"),
}


def _drive(client: AsyncClient) -> AsyncDrive:
    return client.drive("run_1", holder="x")


def operations() -> dict[str, tuple[str, str]]:
    """Return operationId → (method, path template)."""
    return {
        operation["operationId"]: (method.upper(), path)
        for path, item in OPENAPI["paths"].items()
        for method, operation in item.items()
        if method in ("get", "head", "put", "post", "patch", "delete")
    }


class Refusing(httpx.AsyncBaseTransport):
    """Answers only what lets a call of several steps go on, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, request.url.path))
        if request.url.path == "/v1/blobs:missing":
            return httpx.Response(200, json={"missing": []})
        status = 404 if request.method == "HEAD" else 409
        return httpx.Response(status, json={"type": "urn:workstead:problem:refused"})


def test_each_has_a_method_or_a_reason() -> None:
    assert sorted(operations()) == sorted({*CALLS, *NOT_FOR_CLIENTS})
    assert not set(CALLS) & set(NOT_FOR_CLIENTS)


@pytest.mark.parametrize("name", sorted(CALLS))
async def test_the_method_calls_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    if name not in operations():
        pytest.fail(f"{name} is no operation of the API any more")
    asked = await _asked(CALLS[name], tmp_path)
    method, template = operations()[name]
    pattern = re.compile(
        re.sub(r"\\\{path\\\}", ".+", re.sub(r"\\\{(?!path\\\})\w+\\\}", "[^/]+", re.escape(template)))
    )
    assert [1 for used, path in asked if used == method and pattern.fullmatch(path)], (asked, method, template)


async def _asked(call: Call, folder: Path) -> list[tuple[str, str]]:
    transport = Refusing()
    async with AsyncClient("http://there", "wst_x", retries=0, transport=transport) as client:
        try:
            result = call(client, folder)
            if isinstance(result, AsyncIterator):
                async for _ in result:
                    break
            else:
                await result
        except (WorksteadError, httpx.HTTPError):
            pass
    return transport.asked
