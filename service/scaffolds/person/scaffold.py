"""Scaffold kind ``person``: somebody takes the assignment and its files, works elsewhere, and uploads what came of it."""

from service.domain.agents import Driver
from service.scaffolds.undriven import Undriven


class PersonScaffold(Undriven):
    driver = Driver.PERSON
