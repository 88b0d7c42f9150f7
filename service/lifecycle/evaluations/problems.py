"""What is wrong with a draft, all of it at once, named by agent and task; and what is only worth knowing."""

from typing import Any

from service.domain.errors import Conflict, Expected, Invalid

MOST = 100
"""Problems, and warnings, that are told; how many there are is told besides."""
CHARS = 500


class Problems:
    """Collects refusals; an evaluation with any is refused as a whole."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []
        self._warned: list[dict[str, Any]] = []
        self.found = 0

    def add(self, error: Expected, *, agent: str | None = None, task: str | None = None, tasks: int = 1) -> None:
        """Note a refusal; ``tasks``: how many have it, ``task`` being one of them."""
        self.found += 1
        if len(self._told) < MOST:
            said = {"type": error.type, "detail": error.detail[:CHARS], "agent": agent, "task": task}
            self._told.append(said | ({"tasks": tasks} if tasks > 1 else {}))

    def warn(self, type: str, detail: str, **fields: Any) -> None:
        """Note what does not stop it."""
        if len(self._warned) < MOST:
            self._warned.append({"type": type, "detail": detail[:CHARS], **fields})

    @property
    def warnings(self) -> list[dict[str, Any]]:
        return self._warned

    def refuse(self) -> None:
        """Raises Invalid ``evaluation_refused`` with ``problems`` if there is any."""
        if self.found:
            raise Invalid("evaluation_refused", self._words(), problems=self._told, found=self.found)

    def refuse_outdated(self) -> None:
        """Raises Conflict ``evaluation_outdated`` with ``problems`` if there is any: it was good when it was drafted."""
        if self.found:
            raise Conflict("evaluation_outdated", self._words(), problems=self._told, found=self.found)

    def _words(self) -> str:
        first = self._told[0]
        where = " on ".join(str(first[name]) for name in ("agent", "task") if first[name] is not None)
        detail = f"{where}: {first['detail']}" if where else str(first["detail"])
        return detail + (f" (and {self.found - 1} more)" if self.found > 1 else "")
