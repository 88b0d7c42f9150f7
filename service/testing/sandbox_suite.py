"""The contract suite of sandbox engines: checks in a table, run on every implementation and on the fake.

``SUITE`` is for test runners: each :class:`Check` takes a :class:`Bench`. Semantic checks hold for the memory fake too;
the others need the fences of an operating system. It ships with the package, so that authors of engines can run it.
"""

from service.testing.sandbox_bench import Bench, Check
from service.testing.sandbox_checks_collect import COLLECT
from service.testing.sandbox_checks_confinement import CONFINEMENT
from service.testing.sandbox_checks_fences import FENCES
from service.testing.sandbox_checks_life import LIFE
from service.testing.sandbox_checks_limits import LIMITS
from service.testing.sandbox_checks_pipes import PIPES
from service.testing.sandbox_checks_tools import TOOLS

__all__ = ["SUITE", "Bench", "Check"]

SUITE: tuple[Check, ...] = tuple(
    c for table in (LIFE, TOOLS, PIPES, COLLECT, FENCES, CONFINEMENT, LIMITS) for c in table.checks
)
