"""What the scripted provider does in the cases that need more than its shipped scenarios."""

from service.models.scripted.scenario import Action, Fault, FaultKind, Scenario
from service.models.scripted.shipped import REPORT, SUMMARY, success_steps
from service.scaffolds.conformance.task import REPORT_FILE, SUMMARY_FILE

_FILES = f"""Here are the files.

### {REPORT_FILE}
```csv
{REPORT}```

### {SUMMARY_FILE}
```markdown
{SUMMARY}```
"""
"""The answer of a model that is offered no tools."""
_LONG = "".join(f"{number:015d}\n" for number in range(65_536))
"""1 MB in which nothing repeats: programs stop a model that goes round in circles."""
_LOUD = "yes 0123456789abcde | head -c 20000000"

SCENARIOS = (
    Scenario(name="conformance-success", steps=success_steps(), answers=[_FILES]),
    Scenario(
        name="conformance-limited", steps=success_steps(), answers=[_FILES],
        faults=[Fault(kind=FaultKind.STATUS, status=429, retry_after="1", times=2)],
    ),
    Scenario(
        name="conformance-hold",
        steps=[Action(run="sleep 3600")],
        faults=[Fault(kind=FaultKind.STALL, tools=False), Fault(kind=FaultKind.STALL, turn=1)],
    ),
    Scenario(
        name="conformance-flood",
        steps=[Action(run=_LOUD), *success_steps()],
        final=_LONG,
        answers=[_FILES + "\n" + _LONG],
        piece_chars=16_384,
    ),
)  # fmt: skip
