"""Modules that libraries import when they first need them. The user that the gateway goes on as may be unable to read
them: the interpreter itself may lie in root's home."""

import importlib

_LATE = (
    "anyio._backends._asyncio", "asyncio.staggered", "concurrent.futures.thread", "email._header_value_parser",
    "encodings.idna", "httpcore._async.http11", "httpcore._backends.anyio", "json.decoder", "multiprocessing.util",
    "psycopg.errors", "sqlalchemy.dialects.postgresql.psycopg", "stringprep", "traceback", "linecache",
    "zoneinfo",
)  # fmt: skip


def preload() -> None:
    """Import them now."""
    for name in _LATE:
        importlib.import_module(name)
