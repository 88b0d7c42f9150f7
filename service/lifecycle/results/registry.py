"""What makes tables and reports, loaded when it is first used: libraries of frames and figures are large."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO, Literal, cast

from service.domain.benchmarks import Policies
from service.domain.leaderboards import Leaderboard
from service.domain.reports import Report, ReportKind, ReportSettings, ReportTable
from service.store.database import Database, Tx
from service.store.result_tables.scope import Scope

Format = Literal["csv", "parquet", "json"]
WriteTable = Callable[[Tx, str, Scope, Mapping[str | None, Policies], Format, BinaryIO], Awaitable[int]]
BuildReport = Callable[[Database, str, Sequence[str], ReportKind | None, ReportSettings], Awaitable[Report]]
Compare = Callable[[Database, str, Sequence[str], ReportSettings], Awaitable[Report]]
Leader = Callable[[Database, str, Sequence[str], ReportSettings], Awaitable[Leaderboard]]
Page = Callable[[Report], str]
Draw = Callable[[ReportTable], bytes]


async def table_writer() -> WriteTable:
    return cast(WriteTable, await _loaded("service.lifecycle.results.files:write_table"))


async def report_builder() -> BuildReport:
    return cast(BuildReport, await _loaded("service.lifecycle.results.building:build_report"))


async def comparer() -> Compare:
    return cast(Compare, await _loaded("service.lifecycle.results.building:compare"))


async def leaderboard_maker() -> Leader:
    return cast(Leader, await _loaded("service.lifecycle.results.building:leaderboard"))


async def page_maker() -> Page:
    return cast(Page, await _loaded("service.reporting.html:page"))


async def drawer(format: Literal["svg", "png"]) -> Draw:
    return cast(Draw, await _loaded(f"service.reporting.plots:{format}"))


async def _loaded(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(await asyncio.to_thread(import_module, module), name)
