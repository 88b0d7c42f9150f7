"""The built-in task of a conformance run."""

import hashlib

from service.domain.limits import MIB, Limits
from service.domain.tasks import FileRef, TaskManifest
from service.models.scripted.shipped import REPORT, SUMMARY

INPUT = b"name,size\nfirst,1\nsecond,2\n"
REPORT_FILE, SUMMARY_FILE = "output/report.csv", "output/summary.md"
REPORT_SHA256 = hashlib.sha256(REPORT.encode()).hexdigest()
SUMMARY_SHA256 = hashlib.sha256(SUMMARY.encode()).hexdigest()

INSTRUCTION = f"""\
Look at the files in this directory. Then write two files.

1. `{REPORT_FILE}` with exactly this line and a newline at its end:

       {REPORT.strip()}

2. `{SUMMARY_FILE}` with exactly these lines and a newline at its end:

{"".join(f"       {line}".rstrip() + chr(10) for line in SUMMARY.splitlines())}
Then say that you are done.
"""


def task(wall_clock_s: float, instruction: str = INSTRUCTION) -> TaskManifest:
    """Return the task with this wall clock; the same one again has the same digest."""
    size = len(INPUT)
    return TaskManifest(
        name="workstead/conformance",
        instruction=instruction,
        visible=[FileRef(path="inputs.csv", sha256=hashlib.sha256(INPUT).hexdigest(), size_bytes=size)],
        limits=Limits(wall_clock_s=wall_clock_s, disk_bytes=512 * MIB),
    )
