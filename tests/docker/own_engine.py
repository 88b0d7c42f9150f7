"""A Docker engine of a test's own, beside the machine's: its own data, socket, containerd; nothing of it stays."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

UP_S = 90.0


class OwnEngine:
    def __init__(self, folder: Path, *, live_restore: bool) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        self._config = folder / "daemon.json"
        self._config.write_text(json.dumps({"live-restore": live_restore}))
        self._containerd: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the daemon, the first time after its containerd, which outlives it as where systemd runs both."""
        socket = str(self.folder / "containerd.sock")
        if self._containerd is None:
            (self.folder / "containerd.toml").write_text('disabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
            places = ("config", "containerd.toml"), ("root", "containerd-root"), ("state", "containerd-state")
            argv = [word for name, path in places for word in (f"--{name}", str(self.folder / path))]
            self._containerd = self._begin(["containerd", *argv, "--address", socket])
        # In a network of its own: without a bridge of its own it removes docker0, which is the machine's engine's.
        self._process = self._begin([
            "unshare", "--net", "dockerd", "--config-file", str(self._config), "--host", self.url, "--bridge", "none",
            "--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec"),
            "--pidfile", str(self.folder / "pid"), "--iptables=false", "--ip6tables=false", "--containerd", socket,
        ])  # fmt: skip
        end = time.monotonic() + UP_S
        while self.ask("version").returncode != 0:
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError((self.folder / "log").read_text()[-3000:])
            time.sleep(0.1)

    def _begin(self, argv: list[str]) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)

    def ask(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        argv = ["docker", "--host", self.url, *arguments]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    def load(self, image: str) -> None:
        """Copy an image of the machine's engine."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            argv = ["docker", "--host", self.url, "load", "-q"]
            subprocess.run(argv, stdin=saved.stdout, capture_output=True, timeout=300, check=True)

    def end(self, number: signal.Signals) -> None:
        """End the daemon itself, as an upgrade or a crash does, and wait until it is gone."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(timeout=60)

    def close(self) -> None:
        """Stop what still runs of it, by the paths that only this engine has, and give its mounts back."""
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGTERM)
        if self._containerd is not None:
            self._containerd.terminate()
            self._containerd.wait(timeout=60)
        for _ in range(100):
            left = self._processes()
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.1)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", line.split()[1]], check=True, timeout=30)

    def _processes(self) -> list[int]:
        """Return shims that are left: their command lines name our folder."""
        found: list[int] = []
        for proc in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{self.folder}/containerd.sock".encode() in (proc / "cmdline").read_bytes():
                    found.append(int(proc.name))
        return found
