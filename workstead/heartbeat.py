"""Keeps a lease while a driver thinks, from a thread of its own: also where its program blocks for minutes."""

import threading
from types import TracebackType
from typing import Self

import httpx

LEASE_HEADER = "Workstead-Lease"


class Heartbeat:
    """Runs inside a ``with`` block. What fails on the way is tried again; a lease that is lost ends it."""

    def __init__(self, url: str, token: str, run_id: str, lease: str, every_s: float) -> None:
        self.lost = False
        """Somebody else may hold the run now, or it is over."""
        self._url = f"{url.rstrip('/')}/v1/runs/{run_id}/heartbeat"
        self._headers = {"Authorization": f"Bearer {token}", LEASE_HEADER: lease}
        self._every_s = every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat {run_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()

    def _run(self) -> None:
        with httpx.Client(timeout=10) as client:
            while not self._end.wait(self._every_s):
                try:
                    answer = client.post(self._url, headers=self._headers)
                except httpx.TransportError:
                    continue
                if answer.status_code in (401, 403, 404, 409):
                    self.lost = True
                    return
