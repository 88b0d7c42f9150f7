"""Times."""

from datetime import UTC, datetime, timedelta, timezone

from service.api.rendering import rfc3339


def test_milliseconds_are_truncated_and_utc() -> None:
    moment = datetime(2026, 3, 1, 12, 0, 0, 999_999, timezone(timedelta(hours=2)))
    assert rfc3339(moment) == "2026-03-01T10:00:00.999Z"
    assert rfc3339(datetime(2026, 3, 1, tzinfo=UTC)) == "2026-03-01T00:00:00.000Z"
