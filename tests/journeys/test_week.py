"""A benchmark lead's week, by the command line and the client library alone, on real sandboxes with scripted models.

Import and check; draft, estimate, preflight; six agents by five tasks by two; a stop rule, a runaway, the provider away (last of
the three: it is over when all runs are), a broken task; a second judge, two raters; publication, and a verifier that needs nothing
but Python.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.models import lab
from tests.journeys.week import beginning, handing_over, judging, trouble
from tests.journeys.week.lead import Lead
from workstead.sync import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
OUTAGES = {"short": (20.0, 15.0), "ten minutes": (600.0, 600.0)}
"""How long the provider is away, and how long a request waits for it; the default is ten minutes."""


@pytest.fixture
def lead(tmp_path: Path) -> Iterator[Lead]:
    with lab() as made, Client(made.stack.url, made.stack.token) as client:
        yield Lead(made.stack, made.provider, client, tmp_path)


@pytest.mark.parametrize("outage", OUTAGES)
def test_the_week(lead: Lead, outage: str) -> None:
    seconds, patience_s = OUTAGES[outage]
    beginning.monday(lead)
    beginning.tuesday(lead, patience_s)
    trouble.failing(lead)
    trouble.runaway(lead)
    trouble.outage(lead, seconds, patience=patience_s < seconds)
    trouble.mended(lead)
    trouble.broken(lead)
    judging.second_judge(lead)
    judging.campaign(lead)
    handing_over.published(lead)
    handing_over.handed_over(lead)
    handing_over.nothing_is_lost(lead)
    handing_over.no_key_is_out(lead)
    lead.stack.stop()
    assert not lead.stack.leftovers().all()
