"""Gateway services of a project (NEEDS C5). Use it as ``from service.store import services``."""

from service.domain.services import ServiceSpec
from service.store.entries import Entries
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_models import ServiceRow
from service.store.tables_models import services

LISTING = Listing(
    services,
    ServiceRow.of,
    sorts_by(created_at=Sort(services.c.created_at), name=Sort(services.c.name, str)),
    {"name": one_of(services.c.name)},
    version=services.c.revision,
)
ENTRIES = Entries[ServiceSpec, ServiceRow](services, "service", "svc", ServiceRow.of)
create, get, replace, delete = ENTRIES.create, ENTRIES.get, ENTRIES.replace, ENTRIES.delete
