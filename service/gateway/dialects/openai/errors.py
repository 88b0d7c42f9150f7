"""Errors that OpenAI and its kin put into answers."""

from service.gateway.dialects.reading import mapping, text

_STATE = frozenset(
    {
        "server_error",
        "rate_limit_exceeded",
        "rate_limit_error",
        "overloaded",
        "overloaded_error",
        "slow_down",
        "timeout",
    }
)


def error_of(value: object) -> str | None:
    """Return the type of an error object, or None where there is none."""
    if not value:
        return None
    error = mapping(value)
    code = error.get("code")
    known = text(code) if isinstance(code, str) else None
    return known or text(error.get("type")) or (str(code)[:64] if isinstance(code, int) else "error")


def is_state(error: str | None) -> bool:
    """Tell whether the error is the provider's state; a number is a status that a compatible server passes on."""
    return error in _STATE or (error is not None and error.isdecimal() and (error == "429" or error.startswith("5")))
