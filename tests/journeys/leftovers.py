"""What a deployment leaves on the machine: containers, volumes, mounts, loop devices, processes."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


def _lines(*argv: str) -> list[str]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return [line for line in done.stdout.splitlines() if line]


@dataclass(frozen=True)
class Leftovers:
    """Looks for traces of one deployment by its label and its data directory. Empty lists = nothing is left."""

    deployment: str
    data_dir: Path

    def containers(self) -> list[str]:
        return _lines("docker", "ps", "-aq", "--filter", f"label=org.workstead.deployment={self.deployment}")

    def rooms(self) -> list[str]:
        """Containers in which graders work: their deployment is this one's with a number of the grader's process."""
        label = "org.workstead.deployment"
        rows = _lines(
            "docker", "ps", "-a", "--filter", f"label={label}", "--format", f'{{{{.ID}}}} {{{{.Label "{label}"}}}}'
        )
        return [row.split()[0] for row in rows if row.split()[1].startswith(f"{self.deployment}-g")]

    def volumes(self) -> list[str]:
        return _lines("docker", "volume", "ls", "-q", "--filter", f"label=org.workstead.deployment={self.deployment}")

    def kits(self) -> list[str]:
        """Volumes with the programs of agents: they outlive runs on purpose, but not a test's deployment."""
        named = _lines("docker", "volume", "ls", "-q", "--filter", "label=org.workstead.kit")
        return [name for name in named if name.startswith(f"{self.deployment}-kit-")]

    def images(self) -> list[str]:
        """Images that clients brought: they stay while the service knows them, but not a test's deployment."""
        name = f"workstead-image/{self.deployment}"
        return _lines("docker", "images", "--format", "{{.Repository}}:{{.Tag}}", name)

    def mounts(self) -> list[str]:
        return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.data_dir) in line]

    def loop_devices(self) -> list[str]:
        text = subprocess.run(["losetup", "-J"], capture_output=True, text=True, timeout=30, check=True).stdout
        devices: list[dict[str, str | None]] = json.loads(text)["loopdevices"] if text.strip() else []
        return [str(d["name"]) for d in devices if str(self.data_dir) in (d["back-file"] or "")]

    def sandbox_dirs(self) -> list[str]:
        root = self.data_dir / "sandboxes"
        return sorted(p.name for p in root.iterdir() if not p.name.startswith((".", "_"))) if root.is_dir() else []

    def processes(self) -> list[str]:
        """Processes of ours: their environment names the data directory, or they run from it."""
        found: list[str] = []
        for proc in Path("/proc").glob("[0-9]*"):
            if int(proc.name) == os.getpid():
                continue
            try:
                words = (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes()
                exe = str((proc / "exe").readlink())
            except OSError:
                continue
            if f"WORKSTEAD_DATA_DIR={self.data_dir}".encode() in words or str(self.data_dir) in exe:
                found.append(f"{proc.name} {exe}")
        return found

    def all(self) -> dict[str, list[str]]:
        found = {
            "containers": self.containers(), "rooms": self.rooms(), "volumes": self.volumes(), "mounts": self.mounts(),
            "loop devices": self.loop_devices(), "processes": self.processes(),
        }  # fmt: skip
        return {kind: names for kind, names in found.items() if names}

    def sweep(self) -> None:
        """Remove what is there, so that one failed test does not fail the next."""
        for container in (*self.containers(), *self.rooms()):
            subprocess.run(["docker", "rm", "-fv", container], capture_output=True, timeout=60, check=False)
        for volume in (*self.volumes(), *self.kits()):
            subprocess.run(["docker", "volume", "rm", "-f", volume], capture_output=True, timeout=60, check=False)
        for image in self.images():
            subprocess.run(["docker", "rmi", image], capture_output=True, timeout=60, check=False)
        for mount in self.mounts():
            subprocess.run(["umount", "-l", mount.split()[1]], capture_output=True, timeout=60, check=False)
        for device in self.loop_devices():
            subprocess.run(["losetup", "-d", device], capture_output=True, timeout=60, check=False)
