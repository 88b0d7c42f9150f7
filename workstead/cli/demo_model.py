"""The demos' models: a scripted provider, so that no key is needed. The agents are the real programs."""

import json
import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from workstead.aio import AsyncClient
from workstead.cli.service_process import command, environment
from workstead.errors import WorksteadError

SCENARIO = "demo"
FOLDER = "/workspace/solver"
READY_S = 120.0
MODELS = {
    "scripted/messages": {"upstream_id": "scripted-messages-1", "dialect": "anthropic"},
    "scripted/responses": {"upstream_id": "scripted-responses-1", "dialect": "openai"},
}
"""Catalogue name → how it is asked."""


class ProviderFailed(WorksteadError):
    """The scripted provider did not start."""


@contextmanager
def scripted_models(scenarios: str, folder: Path, scenario: str = SCENARIO) -> Generator[str]:
    """Run the provider; give its URL. ``scenarios``: as TOML; ``scenario``: name of the one for those who pick none by their
    key. ``folder`` gets them and the provider's log."""
    script = folder / "scripted-model.toml"
    script.write_text(scenarios, encoding="utf-8")
    port = _free_port()
    argv = command("scripted-provider", "--port", str(port), "--scenarios", str(script), "--scenario", scenario)
    with (folder / "scripted-model.log").open("wb") as log:
        process = subprocess.Popen(argv, env=environment(None, None), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def solving(solver: Path) -> str:
    """Return a script as TOML: write the program's files, run it, say that it is done."""
    writes = [{"write": {"path": f"{FOLDER}/{p.name}", "text": p.read_text()}} for p in sorted(solver.glob("*.py"))]
    run = f"cd {FOLDER} && PYTHONDONTWRITEBYTECODE=1 python3 solve.py /workspace /workspace/output"
    steps: list[Any] = [{"run": "ls -la /workspace"}, *writes, {"run": run}]
    return f"[[scenario]]\nname = {toml(SCENARIO)}\nfinal = {toml('The report is in the output folder.')}\nsteps = {toml(steps)}\n"


async def add_models(client: AsyncClient, url: str, models: Mapping[str, Mapping[str, str]] = MODELS) -> None:
    """Enter the scripted models into the catalogue, with the key that picks the script."""
    for name, fields in models.items():
        base = f"{url}/v1" if fields["dialect"] == "openai" else url
        spec = {"name": name, "provider": "scripted", "base_url": base, **fields}
        known = [model async for model in client.models.list({"name": name})]
        model = await client.models.replace(known[0].id, spec) if known else await client.models.create(spec)
        await client.models.put_credential(model.id, f"sk-scripted-{SCENARIO}")


def toml(value: Any) -> str:
    """Return a value of lists, tables and scalars as TOML has it in one line; nulls of tables are left out."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in pairs.items() if v is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in cast("list[Any]", value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise ProviderFailed("the scripted provider does not answer")
