"""The end of the week: what is published, what a stranger's Python makes of it, and what a forger cannot get past it."""

import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.journeys.week.beginning import AGENTS, RUNS
from tests.journeys.week.judging import STRICT
from tests.journeys.week.lead import Lead

ALIAS, EMBARGOED = ("writer", "North"), "drafter"
AGREES = "all that was checked agrees"


def published(lead: Lead) -> None:
    """The public export: one agent under an alias, one under embargo; anybody reads it, and nobody learns more."""
    target = lead.folder / "public.zip"
    said = ("--profile", "public", "--alias", "=".join(ALIAS), "--embargo", EMBARGOED)
    kind = ("--kind", "jobbench", "--set", f'plans_beside=["{STRICT}"]')
    done = lead.tell("eval", "export", lead.evaluation, "-o", target, *said, *kind, "--json").body
    made = lead.tell("publications", "create", done["id"], "week-48", "--public", "--json").body
    again = lead.folder / "published.zip"
    lead.tell("publications", "get", made["id"], again)
    assert again.read_bytes() == target.read_bytes()
    with httpx.Client(base_url=lead.stack.url) as anybody:
        page = anybody.get(made["url"]).raise_for_status().text
        report = anybody.get(f"{made['url']}/report.json").raise_for_status().text
        assert anybody.get(f"/v1/evaluations/{lead.evaluation}").status_code == 401
    for text in (page, report, *texts(target).values()):
        assert not [word for word in (*ALIAS[:1], EMBARGOED, "lab/pencil", "lab/quill") if word in text]
    assert ALIAS[1] in page
    verified(unpacked(target))


def handed_over(lead: Lead) -> None:
    """The whole, for the house: every figure is found again; whoever changes one verdict or one byte is found out."""
    target = lead.folder / "whole.zip"
    lead.tell("eval", "export", lead.evaluation, "-o", target)
    folder = unpacked(target)
    verified(folder)
    forged_verdict(copied(folder, "verdict"))
    flipped_byte(copied(folder, "byte"))


def texts(archive: Path) -> dict[str, str]:
    with zipfile.ZipFile(archive) as packed:
        return {name: packed.read(name).decode("utf-8", "replace") for name in packed.namelist()}


def unpacked(archive: Path) -> Path:
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


def copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.with_name(name)))


def run_verifier(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run it as somebody who has Python and nothing else: no packages, no environment."""
    argv = [sys.executable, "-I", "-S", "verify.py"]
    return subprocess.run(argv, cwd=folder, env={}, capture_output=True, text=True, timeout=300, check=False)


def verified(folder: Path) -> None:
    done = run_verifier(folder)
    assert (done.returncode, AGREES in done.stdout) == (0, True), (done.stdout[-4000:], done.stderr[-2000:])


def refused(folder: Path, word: str) -> None:
    done = run_verifier(folder)
    assert done.returncode == 1, (done.stdout[-4000:], done.stderr[-2000:])
    assert word in done.stdout + done.stderr, done.stdout[-4000:]
    assert AGREES not in done.stdout


def forged_verdict(folder: Path) -> None:
    """Somebody who gives one run full marks, and knows that the digest has to be changed with it."""
    path = folder / "tables/runs.csv"
    before = path.read_bytes()
    rows = list(csv.DictReader(io.StringIO(before.decode())))
    forged = next(row for row in rows if row["counted"] and float(row["counted"]) < 1)
    forged.update(score=forged["max_score"], fraction="1.0", counted="1.0")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n" if b"\r\n" in before else "\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode())
    manifest = folder / "manifest.json"
    told = json.loads(manifest.read_text())
    (entry,) = [one for one in told["files"] if one["path"] == "tables/runs.csv"]
    assert entry["sha256"] == hashlib.sha256(before).hexdigest()
    entry.update(sha256=hashlib.sha256(path.read_bytes()).hexdigest(), bytes=path.stat().st_size)
    manifest.write_text(json.dumps(told))
    refused(folder, "score")


def flipped_byte(folder: Path) -> None:
    path = folder / "tables/runs.csv"
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    refused(folder, "runs.csv")


def nothing_is_lost(lead: Lead) -> None:
    """Every run that ever was is there, counted once, the same way by whoever counts."""
    found, runs = lead.now, lead.runs()
    assert found.total == len(runs) == RUNS + lead.redone
    assert found.counts["outcome"] == dict(lead.outcomes()) == {"graded": RUNS, "invalidated": lead.redone}
    assert found.counts["phase"] == {"done": len(runs)}
    for agent in found.agents:
        mine = Counter(run.ended_because for run in runs if run.agent.id == agent.id)
        assert agent.counts["ended_because"] == dict(mine), agent
    assert {agent.label: sum(agent.counts["outcome"].get(o, 0) for o in ("graded",)) for agent in found.agents} == (
        dict.fromkeys(AGENTS, RUNS // len(AGENTS))
    )


def no_key_is_out(lead: Lead) -> None:
    for archive in ("public.zip", "whole.zip"):
        found: Any = [
            name for name, text in texts(lead.folder / archive).items() if any(key in text for key in lead.keys)
        ]
        assert found == [], archive
    assert json.loads((lead.folder / "whole/manifest.json").read_text())
