"""A running service, and the half of the examination that only the server's package can make."""

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from workstead.cli.examination.finding import Finding
from workstead.cli.service_process import command
from workstead.config import CLIENT_FILE, NotConfigured, read_file, resolve
from workstead.errors import WorksteadError
from workstead.sync import Client

SELF_TEST_S = 150.0
"""A sandbox per runtime is made and tried, 20 s at most inside."""
END_S = 30.0


def examine_service(data_dir: Path) -> tuple[Finding, str | None]:
    """Return whether a service answers, and its URL if it does."""
    try:
        there = read_file(data_dir / CLIENT_FILE) or resolve(data_dir=data_dir)
    except NotConfigured as error:
        return Finding("service", None, f"none is known here: {error}"), None
    try:
        with Client(there.url, there.token, timeout_s=5, retries=0) as client:
            client.ready()
            me = client.me()
    except WorksteadError as error:
        return Finding(
            "service", None, f"{there.url} does not answer well: {error} (`workstead serve` starts one)"
        ), None
    scopes = ", ".join(me.scopes)
    return Finding("service", True, f"{there.url} is ready; this token may: {scopes}"), there.url


def examine_waiting(data_dir: Path) -> Iterator[Finding]:
    """Say which images runs wait for that a host does not have; nothing where this token may not see hosts."""
    try:
        there = read_file(data_dir / CLIENT_FILE) or resolve(data_dir=data_dir)
        with Client(there.url, there.token, timeout_s=5, retries=0) as client:
            hosts = client.hosts.list()
    except (NotConfigured, WorksteadError):
        return
    for host in hosts:
        for reason in host.reasons:
            if reason.get("reason") == "image_missing":
                yield Finding("waiting runs", None, f"{host.id}: {reason.get('detail')}")


def try_out(environment: Mapping[str, str], timeout_s: float = SELF_TEST_S) -> Iterator[Finding]:
    """Let the server's own package try database and runtimes; notes in words where it is not installed or fails."""
    if find_spec("service") is None:
        yield Finding("self-test", None, "only the client is installed here: database and runtimes were not tried")
        return
    process = subprocess.Popen(
        command("check"),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        said, complaint = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        # SIGINT, so that it removes the sandbox that it was trying.
        process.send_signal(signal.SIGINT)
        _end(process)
        yield Finding("self-test", False, f"not finished after {timeout_s:.0f} s: is the engine overloaded or stuck?")
        return
    found = [finding for line in said.splitlines() if (finding := parse(line)) is not None]
    yield from found
    if process.returncode != 0 or not found:
        last = complaint.decode("utf-8", "replace").strip()[-300:] or f"exit code {process.returncode}"
        yield Finding("self-test", False, f"could not be made: {last}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def parse(line: bytes) -> Finding | None:
    """Return the finding of a JSON line; None for anything else."""
    try:
        body: Any = json.loads(line)
        fields = cast("dict[str, Any]", body)
        return Finding(str(fields["what"]), cast("bool | None", fields["ok"]), str(fields["said"]))
    except (ValueError, KeyError, TypeError):
        return None
