"""An agreement (docx) and its amendment (pdf): what holds now?"""

import re
import time
from pathlib import Path

import docx
from readers import find, number, pdf_text
from report import deliver, say

JURISDICTIONS = ("England and Wales", "Germany", "Ireland", "France")


def solve(workspace: Path, output: Path) -> None:
    document = docx.Document(str(workspace / "agreement.docx"))
    text = "\n".join(p.text for p in document.paragraphs)
    fees = {r.cells[0].text: number(r.cells[2].text) for r in document.tables[0].rows[1:]}
    say(f"read agreement.docx: {len(document.paragraphs)} paragraphs, {len(fees)} fees")
    amendment = " ".join(pdf_text(workspace / "amendment.pdf").split())
    say(f"read amendment.pdf: {len(amendment)} characters")
    clauses = amended(dict(re.findall(r"^(\d+\.\d+) (.*)$", text, re.MULTILINE)), amendment)
    changed = amended_fees(fees, amendment)
    law = find(r"laws of ([A-Z][A-Za-z ]+?)\.", " ".join(clauses.values()))
    answers = {
        "customer": find(r"between (.+?) \(the Customer\)", text),
        "provider": find(r"and ([^()]+?) \(the Provider\)", text),
        "effective_date": iso(find(r"takes effect on (\d+ \w+ \d{4})", text)),
        "amendment_date": iso(find(r"dated (\d+ \w+ \d{4})", amendment)),
        "notice_days": int(find(r"not less than (\d+) days", clauses["1.3"])),
        "payment_days": int(find(r"due within (\d+) days", clauses["2.2"])),
        "renews_automatically": any("renews automatically" in c for c in clauses.values()),
        "liability_cap_eur": number(find(r"limited to EUR ([\d,]+)", clauses["3.1"])),
        "annual_fees_eur": round(12 * sum(changed.values()), 2),
        "governing_law": law if law in JURISDICTIONS else "",
    }
    findings = [f"{key.replace('_', ' ')}: {value}" for key, value in answers.items()]
    rows = [[code, fees.get(code), fee] for code, fee in sorted(changed.items())]
    deliver(output, "Contract as amended", answers, findings, ["code", "fee before", "fee now"], rows)


def amended(clauses: dict[str, str], amendment: str) -> dict[str, str]:
    """Apply replacements of words and deletions of clauses."""
    changes = re.findall(
        r"In clause (\d+\.\d+) the [a-z ]*? ?of (.+?) is replaced by (.+?)\.(?= \d+\. | Signed)", amendment
    )
    for clause, old, new in changes:
        if old not in clauses[clause]:
            raise SystemExit(f"clause {clause} does not say {old!r}")
        clauses[clause] = clauses[clause].replace(old, new)
        say(f"clause {clause}: {old} becomes {new}")
    for clause in re.findall(r"Clause (\d+\.\d+) is deleted", amendment):
        say(f"clause {clause} is deleted")
        del clauses[clause]
    return clauses


def amended_fees(fees: dict[str, float], amendment: str) -> dict[str, float]:
    now = dict(fees)
    for code, amount in re.findall(r"monthly fee for (\S+) is replaced by EUR ([\d,]+\.\d\d)", amendment):
        now[code] = number(amount)
    for code, amount in re.findall(r"(H-\d+) [A-Z][a-z ]+? EUR ([\d,]+\.\d\d) per month", amendment):
        now[code] = number(amount)
    return now


def iso(text: str) -> str:
    return time.strftime("%Y-%m-%d", time.strptime(text, "%d %B %Y"))
