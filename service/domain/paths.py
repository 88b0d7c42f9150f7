"""Relative POSIX paths that a task or an API caller may name inside a workspace."""

from typing import Annotated

from pydantic import AfterValidator


def check_relative_path(value: str) -> str:
    """Return ``value`` if it is a clean relative path; raise ValueError otherwise.

    Clean: no empty, ``.`` or ``..`` component, no backslash, no NUL or other control character, at most 1 024 bytes.
    """
    if not value or len(value.encode(errors="surrogatepass")) > 1024:
        raise ValueError("a path has 1 to 1 024 bytes")
    if any(ord(c) < 32 or c in "\\\x7f" or 0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise ValueError("a path has no backslash, control character or surrogate")
    if any(part in ("", ".", "..") for part in value.split("/")):
        raise ValueError("a path is relative and has no empty, '.' or '..' component")
    return value


RelativePath = Annotated[str, AfterValidator(check_relative_path)]
