"""Scaffold kind ``external``: a product that cannot be driven; its deliverable is uploaded, nothing else is seen."""

from service.domain.agents import Driver
from service.scaffolds.undriven import Undriven


class ExternalScaffold(Undriven):
    driver = Driver.EXTERNAL
