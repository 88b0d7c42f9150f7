"""Importers by name. A dotted path is imported when its importer is first used."""

from functools import cache
from importlib import import_module
from typing import cast

from workstead.importers.contract import Importer

IMPORTERS = {
    "freelance": "workstead.importers.freelance.importer:FreelanceImporter",
    "gdpval": "workstead.importers.gdpval.importer:GdpvalImporter",
    "harbor": "workstead.importers.harbor.importer:HarborImporter",
    "jobbench": "workstead.importers.jobbench.importer:JobBenchImporter",
    "payworthy": "workstead.importers.payworthy.importer:PayWorthyImporter",
    "rli": "workstead.importers.rli.importer:RliImporter",
    "rows": "workstead.importers.rows.importer:RowsImporter",
}


@cache
def importer_for(name: str) -> Importer | None:
    """Return the importer of this name, or None where this version has none."""
    path = IMPORTERS.get(name)
    if path is None:
        return None
    module, _, attribute = path.partition(":")
    return cast(Importer, getattr(import_module(module), attribute)())
