"""What the pages are made from."""

from functools import partial

from service.api import previews
from service.api.auth import page_caller
from service.api.rating_auth import session_rater
from service.api.state import ApiState
from service.dashboard.visitor import Dashboard, Rating


def dashboard_for(state: ApiState) -> Dashboard:
    """Return the pages' parts for ``service.dashboard.app.install``, onto an application made from ``state``."""
    rating = Rating(state.blobs, session_rater, partial(previews.origins, state.config))
    return Dashboard(state.db, page_caller, rating)
