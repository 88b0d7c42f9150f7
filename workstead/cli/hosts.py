"""``workstead hosts …``: where sandboxes run, what is left there, and who takes new runs. For operators."""

from typing import Annotated

import typer

from workstead.cli.common import emit, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.tables import plain_table
from workstead.models import Host
from workstead.sync import Client

hosts_app = typer.Typer(help="Hosts that run sandboxes; for operators.", no_args_is_help=True)

HostId = Annotated[str, typer.Argument(help="Host, as listed", show_default=False)]
StopWorker = Annotated[bool, typer.Option("--stop-worker", help="End its worker when its last run is released")]
GIB = 1 << 30


@hosts_app.command("list")
@in_words
def list_hosts(as_json: Json = False) -> None:
    """List hosts with what is left on them and why they take no run. With --json one object per line."""
    with Client() as client:
        hosts = client.hosts.list()
    for host in hosts if as_json else ():
        emit(host)
    if not as_json:
        columns = ("host", "state", "slots", "memory promised", "disk free", "heartbeat", "takes no run because")
        out.print(plain_table(columns, map(_row, hosts)))


@hosts_app.command()
@in_words
def cordon(host: HostId, as_json: Json = False) -> None:
    """Let a host take no new run; those that are live go on."""
    with Client() as client:
        _say(client.hosts.cordon(host), as_json)


@hosts_app.command()
@in_words
def uncordon(host: HostId, as_json: Json = False) -> None:
    """Let a host take runs again."""
    with Client() as client:
        _say(client.hosts.uncordon(host), as_json)


@hosts_app.command()
@in_words
def drain(host: HostId, stop_worker: StopWorker = False, as_json: Json = False) -> None:
    """Cordon a host and, with --stop-worker, end its worker when its last run is released."""
    with Client() as client:
        _say(client.hosts.drain(host, stop_worker=stop_worker), as_json)


@hosts_app.command()
@in_words
def slots(
    host: HostId,
    most: Annotated[int | None, typer.Argument(min=0, max=512, help="Most runs at once; without it: no limit")] = None,
    as_json: Json = False,
) -> None:
    """Limit how many runs a host may have at once."""
    with Client() as client:
        _say(client.hosts.change(host, slots_limit=most), as_json)


def _say(host: Host, as_json: bool) -> None:
    if as_json:
        emit(host)
    else:
        line(f"{host.id}: {_state(host)}, {_slots(host)} slots used")


def _state(host: Host) -> str:
    return f"{host.state}, cordoned" if host.cordoned else host.state


def _slots(host: Host) -> str:
    return f"{host.used}/{host.slots if host.slots_limit is None else min(host.slots, host.slots_limit)}"


def _row(host: Host) -> tuple[object, ...]:
    memory = f"{_gib(host.memory.get('promised_bytes'))} of {_gib(host.memory.get('usable_bytes'))}"
    age = None if host.heartbeat_age_s is None else f"{host.heartbeat_age_s:.0f} s ago"
    why = ", ".join(str(r.get("detail") or r.get("reason")) for r in host.reasons)
    return host.id, _state(host), _slots(host), memory, _gib(host.disk.get("free_bytes")), age, why or None


def _gib(size: int | None) -> str:
    return "?" if size is None else f"{size / GIB:.1f} GiB"
