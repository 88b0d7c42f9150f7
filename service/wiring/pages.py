"""The pages, put onto the API's application."""

from functools import partial

from fastapi import FastAPI

from service.api import previews
from service.api.auth import page_caller
from service.api.rating_auth import session_rater
from service.api.state import ApiState
from service.dashboard.app import install
from service.dashboard.visitor import Dashboard, Rating


def install_pages(app: FastAPI, state: ApiState) -> None:
    """Add all pages to ``app``, which was made from ``state``."""
    rating = Rating(state.blobs, session_rater, partial(previews.origins, state.config))
    install(app, Dashboard(state.db, page_caller, rating))
