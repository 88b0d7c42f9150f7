"""How the office program is started: nothing of a document runs, nothing is fetched, nothing is asked, no screen."""

import ctypes
import resource
import signal
import subprocess
from pathlib import Path

PROGRAM = "/usr/lib/libreoffice/program/soffice.bin"
ANEW = 81
"""Its code when it has made itself a profile and wants to be started again."""
FILE_MOST = 512 << 20
"""Bytes of a file that it may write."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_SETTINGS = (
    ("Office.Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Office.Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Office.Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Office.Calc/Formula/Load", "OOXMLRecalcMode", "1"),
    ("Office.Calc/Formula/Load", "ODFRecalcMode", "1"),
    ("Office.Calc/Content/Update", "Link", "2"),
    ("Office.Writer/Content/Update", "Link", "0"),
    ("Office.Common/Misc", "UseOpenCL", "false"),
    ("Setup/Office", "ooSetupInstCompleted", "true"),
)
"""Cached values stay as they are until a recalculation is asked for; links are never updated."""
_ITEM = '<item oor:path="/org.openoffice.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop></item>'
_FILE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<oor:items xmlns:oor="http://openoffice.org/2001/registry" '
    'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n{}\n</oor:items>\n'
)


def write_profile(folder: Path) -> None:
    user = folder / "user"
    user.mkdir(parents=True, exist_ok=True)
    items = "\n".join(_ITEM.format(*setting) for setting in _SETTINGS)
    (user / "registrymodifications.xcu").write_text(_FILE.format(items))


def started(profile: Path, pipe: str) -> subprocess.Popen[bytes]:
    """Start it; it ends with the process that called this."""
    argv = [
        PROGRAM, f"-env:UserInstallation=file://{profile}", "--headless", "--norestore", "--nodefault", "--nologo",
        "--nolockcheck", f"--accept=pipe,name={pipe};urp;",
    ]  # fmt: skip
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(profile), "LC_ALL": "C.UTF-8", "SAL_DISABLE_OPENCL": "1"}
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        argv, stdin=nothing, stdout=nothing, stderr=nothing, env=environment, cwd=profile,
        preexec_fn=_bounded,  # noqa: PLW1509 - the driver has one thread
    )  # fmt: skip


def _bounded() -> None:
    control = ctypes.CDLL(None).prctl
    control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    control(
        _PR_SET_DUMPABLE, 1, 0, 0, 0
    )  # the extracting program is not, and so nothing below /proc/self could be written
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = FILE_MOST if allowed == resource.RLIM_INFINITY else min(FILE_MOST, allowed)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    # The first to go when memory runs out, and never the launcher.
    Path("/proc/self/oom_score_adj").write_text("1000")
