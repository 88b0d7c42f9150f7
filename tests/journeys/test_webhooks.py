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


@pytest.mark.timeout(300)  # two starts of the whole service
def test_runs_are_told_of_across_a_restart_and_hosts_can_be_cordoned(inbox: Inbox) -> None:
    with Stack({"WORKSTEAD_WEBHOOKS__ALLOW_PRIVATE": "true", "WORKSTEAD_WORKER__WARM_TOTAL": "0"}) as stack:
        url = f"http://127.0.0.1:{inbox.server_port}/in"
        webhook = stack.call("POST", "/v1/webhooks", json={"url": url, "events": ["run.running", "run.done"]})
        inbox.secret = webhook["secret"]
        (host,) = wait_until("the host registers", lambda: stack.call("GET", "/v1/hosts")["data"], 90)
        assert host["memory"]["usable_bytes"] > 0
        assert host["disk"]["free_bytes"] > host["disk"]["watermark_bytes"] > 0
        stack.call("PATCH", f"/v1/hosts/{host['id']}", json={"cordoned": True})
        body = {"task": make_task(stack, graders=[]), "agent": make_agent(stack, ["true"]), "labels": {"week": "48"}}
        run = stack.call("POST", "/v1/runs", json=body)["id"]
        hold = stack.call("GET", f"/v1/runs/{run}")["hold"]
        assert (hold["reason"], hold["position"]) == ("hosts_cordoned", 1)
        stack.stop()
        stack.start()  # the key of the secrets is a file, and what operators set stays
        assert stack.call("GET", f"/v1/hosts/{host['id']}")["cordoned"] is True
        stack.call("PATCH", f"/v1/hosts/{host['id']}", json={"cordoned": False})
        wait_until("both events arrive", lambda: len(inbox.events) == 2, 90)
    assert [(e["type"], e["data"]["id"], e["data"]["labels"]) for e in inbox.events] == [
        ("run.running", run, {"week": "48"}), ("run.done", run, {"week": "48"}),
    ]  # fmt: skip
