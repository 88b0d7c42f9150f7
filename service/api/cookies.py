"""The session cookies of our pages: of those who have a token, and of people who rate.

``__Host-workstead`` with Secure, everywhere but on a loopback http address. There it is ``workstead`` without Secure:
the prefix is refused without Secure, and browsers differ on whether 127.0.0.1 counts as secure. Nothing is lost: who
can read loopback traffic or plant cookies for it is the user or root.
"""

from fastapi import Request
from starlette.responses import Response

from service.api.state import ApiConfig, api_state

SESSION_S = 12 * 3600


def cookie_name(config: ApiConfig) -> str:
    return "__Host-workstead" if config.secure_cookie else "workstead"


def session_secret(request: Request) -> str | None:
    return request.cookies.get(cookie_name(api_state(request).config))


def rater_cookie_name(config: ApiConfig) -> str:
    """Return the cookie of people who rate: a session of their own, which opens nothing but their items."""
    return f"{cookie_name(config)}-rater"


def rater_secret(request: Request) -> str | None:
    return request.cookies.get(rater_cookie_name(api_state(request).config))


def set_rater(response: Response, config: ApiConfig, secret: str) -> None:
    _set(response, config, rater_cookie_name(config), secret)


def clear_rater(response: Response, config: ApiConfig) -> None:
    _clear(response, config, rater_cookie_name(config))


def set_session(response: Response, config: ApiConfig, secret: str) -> None:
    _set(response, config, cookie_name(config), secret)


def clear_session(response: Response, config: ApiConfig) -> None:
    _clear(response, config, cookie_name(config))


def _set(response: Response, config: ApiConfig, name: str, secret: str) -> None:
    response.set_cookie(
        name, secret, max_age=SESSION_S, path="/", secure=config.secure_cookie, httponly=True, samesite="strict"
    )


def _clear(response: Response, config: ApiConfig, name: str) -> None:
    response.delete_cookie(name, path="/", secure=config.secure_cookie, httponly=True, samesite="strict")
