"""A run on the real engine, told of by webhook to a receiver that checks it; hosts and the queue as operators see them."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.journeys.jobs import make_agent, make_task
from tests.journeys.stack import Stack, wait_until
from workstead.webhooks import Seen, verify


class Inbox(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.secret = ""
        self.seen = Seen()
        self.events: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Inbox  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.events.append(verify(self.server.secret, dict(self.headers), body, seen=self.server.seen))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with Inbox() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def host(service: Stack) -> Iterator[dict[str, Any]]:
    (found,) = wait_until("the host registers", lambda: service.call("GET", "/v1/hosts")["data"], 90)
    yield found
    service.call("PATCH", f"/v1/hosts/{found['id']}", json={"cordoned": False})


@pytest.fixture
def told(service: Stack, inbox: Inbox) -> Iterator[None]:
    url = f"http://127.0.0.1:{inbox.server_port}/in"
    webhook = service.call("POST", "/v1/webhooks", json={"url": url, "events": ["run.running", "run.done"]})
    inbox.secret = webhook["secret"]
    yield
    service.call("DELETE", f"/v1/webhooks/{webhook['id']}")


@pytest.mark.timeout(300)  # two starts of the whole service
@pytest.mark.usefixtures("told")
def test_runs_are_told_of_across_a_restart_and_hosts_can_be_cordoned(
    service: Stack, inbox: Inbox, host: dict[str, Any]
) -> None:
    assert host["memory"]["usable_bytes"] > 0
    assert host["disk"]["free_bytes"] > host["disk"]["watermark_bytes"] > 0
    service.call("PATCH", f"/v1/hosts/{host['id']}", json={"cordoned": True})
    body = {"task": make_task(service, graders=[]), "agent": make_agent(service, ["true"]), "labels": {"week": "48"}}
    run = service.call("POST", "/v1/runs", json=body)["id"]
    hold = service.call("GET", f"/v1/runs/{run}")["hold"]
    assert (hold["reason"], hold["position"]) == ("hosts_cordoned", 1)
    service.stop()
    service.start()  # the key of the secrets is a file, and what operators set stays
    assert service.call("GET", f"/v1/hosts/{host['id']}")["cordoned"] is True
    service.call("PATCH", f"/v1/hosts/{host['id']}", json={"cordoned": False})
    wait_until("both events arrive", lambda: len(inbox.events) == 2, 90)
    assert [(e["type"], e["data"]["id"], e["data"]["labels"]) for e in inbox.events] == [
        ("run.running", run, {"week": "48"}), ("run.done", run, {"week": "48"}),
    ]  # fmt: skip
