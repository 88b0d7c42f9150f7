"""Logs of a process as JSON, one line each whatever a field holds: ours (structlog) and those of libraries (logging).

Called once at a process's start, by wiring.
"""

import logging
import sys
from typing import TextIO

import structlog

MAX_FIELD = 4000
"""Most characters of one text in a log line; tracebacks have ten times as much."""
_LONG = frozenset({"exception"})


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send all logs of ``level`` and above to ``stream`` (default: standard error)."""
    out = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _bounded,
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _bounded(
    _logger: structlog.typing.WrappedLogger, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    for key, value in event.items():
        limit = MAX_FIELD * (10 if key in _LONG else 1)
        if isinstance(value, str) and len(value) > limit:
            event[key] = f"{value[:limit]} …[{len(value) - limit} more]"
    return event
