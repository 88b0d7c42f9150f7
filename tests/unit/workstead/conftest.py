"""No real waiting between retries."""

import asyncio
import time

import pytest


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the waits that were asked for, in seconds."""
    asked: list[float] = []

    async def sleep(wait_s: float) -> None:
        asked.append(wait_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(time, "sleep", asked.append)
    monkeypatch.delenv("WORKSTEAD_URL", raising=False)
    monkeypatch.delenv("WORKSTEAD_TOKEN", raising=False)
    return asked
