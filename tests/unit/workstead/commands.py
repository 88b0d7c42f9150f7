"""Commands in this process, against a scripted server."""

from collections.abc import Sequence

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests.unit.workstead.fake_api import Answer, Script
from workstead.cli import common
from workstead.cli.app import app


class Server:
    """What the commands of a test talk to; ``script`` is set before each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORKSTEAD_URL", "http://there")
        monkeypatch.setenv("WORKSTEAD_TOKEN", "wst_secret")
        monkeypatch.setattr(common.out, "width", 220)
        self.script = Script()

        def handle(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            return self.script.sync(request)

        async def handle_async(_: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
            return await self.script.asynchronous(request)

        monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)
        monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", handle_async)

    def run(self, *words: str, answers: Sequence[Answer], stdin: str = "") -> Result:
        self.script = Script(*answers)
        return CliRunner().invoke(app, list(words), input=stdin)

    @property
    def asked(self) -> list[tuple[str, str]]:
        return [(r.method, r.url.path) for r in self.script.requests]
