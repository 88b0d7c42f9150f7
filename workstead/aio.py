"""The asynchronous client."""

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

import httpx

from workstead._async.annotations import AsyncAnnotations
from workstead._async.benchmarks import AsyncBenchmarks
from workstead._async.blobs import AsyncBlobs
from workstead._async.campaigns import AsyncCampaigns, AsyncRating
from workstead._async.catalogue import AsyncBreakers, AsyncModels, AsyncServices
from workstead._async.changes import follow_changes
from workstead._async.controls import AsyncControls
from workstead._async.deliverables import AsyncDeliverables
from workstead._async.driving import AsyncDrive
from workstead._async.evaluations import AsyncEvaluations
from workstead._async.evidence import AsyncEvidence
from workstead._async.exports import AsyncExports
from workstead._async.forecasts import AsyncForecasts
from workstead._async.grading_plans import AsyncGradingPlans
from workstead._async.gradings import AsyncGradings
from workstead._async.hosts import AsyncHosts
from workstead._async.http import AsyncTransport
from workstead._async.images import AsyncImages
from workstead._async.judges import AsyncJudges
from workstead._async.operations import AsyncOperations
from workstead._async.projects import AsyncProjects
from workstead._async.publications import AsyncPublications
from workstead._async.registry import AsyncAgents, AsyncScaffolds, AsyncTasks
from workstead._async.regrades import AsyncRegrades
from workstead._async.reports import AsyncReports
from workstead._async.reviews import AsyncReviews, AsyncVotes
from workstead._async.run_notes import AsyncManyRuns, AsyncRunNotes
from workstead._async.runs import AsyncRuns
from workstead._async.tickets import AsyncTickets
from workstead._async.tokens import AsyncTokens
from workstead._async.webhooks import AsyncWebhooks
from workstead.config import resolve
from workstead.models import Change, Me


class AsyncClient:
    """A Workstead service. Use as a context manager::

        async with AsyncClient() as client:
            task = await client.tasks.create("tasks/my-task")
            run = await client.runs.create(task.id, "my-agent")
            async for event in client.runs.events(run.id): ...

    Without arguments: WORKSTEAD_URL and WORKSTEAD_TOKEN, else the file that a local ``workstead serve`` wrote.
    Raises NotConfigured. Calls raise Problem and its kinds, Disconnected, ProtocolError (``workstead.errors``).
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 30,
        retries: int = 5,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        there = resolve(url, token)
        self.url = there.url
        self._token = there.token
        self._http = AsyncTransport(there.url, there.token, timeout_s=timeout_s, retries=retries, transport=transport)
        self.blobs = AsyncBlobs(self._http)
        self.tasks = AsyncTasks(self._http, self.blobs)
        self.scaffolds = AsyncScaffolds(self._http, self.blobs)
        self.images = AsyncImages(self._http, self.blobs)
        self.agents = AsyncAgents(self._http)
        self.runs = AsyncRuns(self._http)
        self.many_runs = AsyncManyRuns(self._http)
        self.run_notes = AsyncRunNotes(self._http)
        self.evaluations = AsyncEvaluations(self._http)
        self.reports = AsyncReports(self._http)
        self.exports = AsyncExports(self._http)
        self.publications = AsyncPublications(self._http)
        self.operations = AsyncOperations(self._http)
        self.benchmarks = AsyncBenchmarks(self._http, self.blobs, self.operations)
        self.gradings = AsyncGradings(self._http)
        self.grading_plans = AsyncGradingPlans(self._http)
        self.regrades = AsyncRegrades(self._http)
        self.reviews = AsyncReviews(self._http)
        self.votes = AsyncVotes(self._http)
        self.evidence = AsyncEvidence(self._http)
        self.controls = AsyncControls(self._http)
        self.judges = AsyncJudges(self._http)
        self.forecasts = AsyncForecasts(self._http)
        self.annotations = AsyncAnnotations(self._http)
        self.campaigns = AsyncCampaigns(self._http)
        self.rating = AsyncRating(self._http)
        self.deliverables = AsyncDeliverables(self._http, self.blobs)
        self.tokens = AsyncTokens(self._http)
        self.tickets = AsyncTickets(self._http)
        self.projects = AsyncProjects(self._http)
        self.hosts = AsyncHosts(self._http)
        self.webhooks = AsyncWebhooks(self._http)
        self.models = AsyncModels(self._http)
        self.services = AsyncServices(self._http)
        self.breakers = AsyncBreakers(self._http)

    async def changes(
        self, *, after: str | None = None, kinds: Sequence[str] | None = None, follow: bool = True
    ) -> AsyncIterator[Change]:
        """Yield changed resources, each as it is now, and wait for more; without ``follow`` stop at what there is.

        ``after``: a change's cursor, or ``now``; without it all resources come first. Raises Gone for a cursor that is
        too old, Problem, Disconnected.
        """
        async for change in follow_changes(self._http, after, kinds, follow=follow):
            yield change

    def drive(self, run_id: str, *, holder: str) -> AsyncDrive:
        """Drive a run of a ``remote`` or ``person`` agent: ``async with client.drive(run.id, holder="my loop") as box``."""
        return AsyncDrive(self._http, self.url, self._token, run_id, holder)

    async def me(self) -> Me:
        """Return what this token may do."""
        return Me.model_validate(await self._http.json("GET", "/v1/me"))

    async def ready(self) -> bool:
        """Tell whether the service says that it is ready. Raises Disconnected, Problem."""
        return (await self._http.request("GET", "/readyz")).is_success

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
