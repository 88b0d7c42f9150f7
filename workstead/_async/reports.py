"""Reports over evaluations: figures with what they rest on, as JSON, as a page, as pictures; result tables as files."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead.models_evaluations import Report

Library = Literal["polars", "pandas"]


class AsyncReports:
    """``/v1/reports``, and what each evaluation has of its own. ``settings``: seed, draws, missing, grouping, options …"""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def of(
        self, evaluation_id: str, *, kind: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> Report:
        """Return an evaluation's report; ``kind``: overview, jobbench, rli, payworthy or freelance, else its benchmark's own."""
        path = _path(evaluation_id, "report")
        params = {} if kind is None else {"kind": kind}
        if not settings:
            return Report.model_validate(await self._http.json("GET", path, params=params))
        return Report.model_validate(await self._http.json("POST", path, params=params, json=dict(settings)))

    async def create(
        self, evaluations: Sequence[str], *, kind: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> Report:
        """Return one report over several evaluations."""
        return await self._post("/v1/reports", evaluations, kind, settings)

    async def compare(
        self, evaluations: Sequence[str], *, kind: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> Report:
        """Return the second of two evaluations beside the first, task by task, with paired tests."""
        return await self._post("/v1/reports:compare", evaluations, kind, settings)

    async def leaderboard(
        self, evaluations: Sequence[str], *, settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the agents' rows in the layout of JobBench's site; option ``aggregate``: macro, or micro as the site does."""
        body: dict[str, Any] = {"evaluations": [*evaluations], "settings": dict(settings or {})}
        return cast("dict[str, Any]", await self._http.json("POST", "/v1/reports:leaderboard", json=body))

    async def page(
        self, evaluation_id: str, *, kind: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return the report as one HTML file that opens offline."""
        said: dict[str, Any] = {"params": {} if kind is None else {"kind": kind}, "headers": {"Accept": "text/html"}}
        path = _path(evaluation_id, "report")
        return (await self._http.request("POST", path, json=dict(settings or {}), **said)).content

    async def plot(self, evaluation_id: str, table: str, *, format: str = "svg", kind: str | None = None) -> bytes:
        """Return the picture of one of the report's tables, as ``svg`` or ``png``."""
        params = {} if kind is None else {"kind": kind}
        path = _path(evaluation_id, "report", "plots", f"{quote(table, safe='')}.{format}")
        return (await self._http.request("GET", path, params=params)).content

    async def table(self, evaluation_id: str, name: str, target: Path, *, format: str = "csv", **options: Any) -> int:
        """Write a result table to the new file ``target`` as ``csv``, ``parquet`` or ``json``; return its bytes."""
        path = _path(evaluation_id, "tables", f"{quote(name, safe='')}.{format}")
        return await download(self._http, f"{path}?{urlencode(options)}" if options else path, target)

    async def frame(self, evaluation_id: str, name: str, *, library: Library = "polars") -> Any:
        """Return a result table as a data frame of ``polars`` or ``pandas``.

        Raises ModuleNotFoundError where the library is not installed (``pip install 'workstead[parquet]'`` brings polars).
        """
        read = import_module(library).read_parquet
        path = _path(evaluation_id, "tables", f"{quote(name, safe='')}.parquet")
        return read(BytesIO((await self._http.request("GET", path)).content))

    async def _post(
        self, path: str, evaluations: Sequence[str], kind: str | None, settings: Mapping[str, Any] | None
    ) -> Report:
        body: dict[str, Any] = {"evaluations": [*evaluations], "settings": dict(settings or {})}
        if kind is not None:
            body["kind"] = kind
        return Report.model_validate(await self._http.json("POST", path, json=body))


def _path(evaluation_id: str, *rest: str) -> str:
    return "/".join(["/v1/evaluations", quote(evaluation_id, safe=""), *rest])
