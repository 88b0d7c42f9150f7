"""The session cookie of our pages.

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


def set_session(response: Response, config: ApiConfig, secret: str) -> None:
    response.set_cookie(
        cookie_name(config),
        secret,
        max_age=SESSION_S,
        path="/",
        secure=config.secure_cookie,
        httponly=True,
        samesite="strict",
    )


def clear_session(response: Response, config: ApiConfig) -> None:
    response.delete_cookie(cookie_name(config), path="/", secure=config.secure_cookie, httponly=True, samesite="strict")
