"""Scaffold kind ``person``: somebody takes the assignment and its files, works elsewhere, and uploads what came of it.

With a surface that has a screen the work is done there, through a page.
"""

from service.domain.agents import Driver, Surface
from service.scaffolds.undriven import Undriven


class PersonScaffold(Undriven):
    driver = Driver.PERSON
    surfaces = frozenset(Surface)
