"""The HTTP API as one application, made from :class:`ApiState`. The pages are put onto it by wiring."""

from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from prometheus_client import CollectorRegistry

from service.api import previews, problems
from service.api.edge import Edge
from service.api.metrics import Metrics
from service.api.problems import MEDIA_TYPE, Problem
from service.api.resources import (
    agents,
    annotation_sets,
    artifacts,
    attempts,
    benchmarks,
    blobs,
    breakers,
    bulk_runs,
    campaigns,
    changes,
    client_facts,
    confirmations,
    conformance,
    contamination,
    controls,
    deliverables,
    desktop,
    driving,
    embeddings,
    evaluation_control,
    evaluation_matrix,
    evaluation_tables,
    evaluations,
    evidence,
    exports,
    film,
    forecast_sets,
    grading_export,
    grading_jobs,
    grading_plans,
    gradings,
    health,
    hosts,
    images,
    integrity,
    jobbench,
    judge_probes,
    leases,
    live_view,
    mcp,
    me,
    model_requests,
    models,
    operations,
    pausing,
    projects,
    publications,
    raters,
    rating,
    rating_previews,
    regrades,
    reports,
    reviews,
    run_events,
    run_notes,
    runs,
    scaffold_catalogue,
    scaffolds,
    service_calls,
    services,
    sessions,
    shell,
    task_archives,
    tasks,
    tickets,
    tokens,
    trajectory,
    votes,
    webhooks,
)
from service.api.shortcut import Shortcut
from service.api.state import ApiState

API_VERSION = "1"
RESOURCES = (
    blobs, task_archives, tasks, client_facts, benchmarks, embeddings, operations, conformance, scaffolds, scaffold_catalogue,
    images, agents,
    runs, run_events, attempts, artifacts, model_requests, service_calls, trajectory,
    models, services, breakers,
    integrity, evidence, judge_probes, grading_jobs, grading_export, gradings, jobbench, controls, grading_plans, regrades, reviews, votes,
    changes, tokens, tickets, me, sessions, health, hosts,
    projects, webhooks, leases, driving, desktop, deliverables, mcp, shell, live_view, pausing, confirmations, contamination, film,
    publications, campaigns, raters, rating, rating_previews, forecast_sets, annotation_sets, evaluations, evaluation_control, evaluation_matrix,
    evaluation_tables, bulk_runs, run_notes, reports, exports,
)  # fmt: skip
EXPOSED = ["ETag", "Link", "Location", "Retry-After", "X-Request-Id", "Idempotent-Replay", "Upload-Offset",
           "RateLimit", "RateLimit-Policy"]  # fmt: skip


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the description, with how callers say who they are and the type that problems really have."""
        if self.openapi_schema is None:
            found = super().openapi()
            found["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"},
                "ticket": {"type": "apiKey", "in": "query", "name": "ticket", "description": "one GET, one path, 60 s"},
            }
            found["security"] = [{"token": []}]
            for operation in (o for item in found["paths"].values() for o in item.values()):
                content = operation["responses"]["4XX"]["content"]
                content[MEDIA_TYPE] = content.pop("application/json")
        return super().openapi()


def create_app(state: ApiState) -> FastAPI:
    """Return the API. Whoever serves it starts ``state.notifications`` and closes ``state.db``."""
    app = describe()
    app.state.api = state
    app.state.metrics = CollectorRegistry()
    app.add_middleware(Shortcut, state=state)
    app.add_middleware(Metrics, registry=app.state.metrics, state=state)
    if state.config.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(state.config.cors_origins),
            allow_credentials=False,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=EXPOSED,
        )
    config = state.config
    if config.preview_origin is not None:
        app.add_middleware(previews.PreviewHost, origin=config.preview_origin)
    app.add_middleware(Edge, max_json_bytes=config.max_json_bytes, max_archive_bytes=config.max_archive_bytes)
    return app


def describe() -> FastAPI:
    """Return the API's routes and handlers without anything to run them on: enough for its schema."""
    app = _Api(
        title="Workstead",
        version=API_VERSION,
        summary="Runs AI agents on real work in sandboxes and grades what they deliver.",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={"4XX": {"model": Problem, "description": "RFC 9457 problem"}},
    )
    for resource in RESOURCES:
        app.include_router(resource.router)
    app.include_router(models.shipped_router)
    app.include_router(previews.router)
    app.include_router(publications.open_router)
    problems.install(app)
    return app
