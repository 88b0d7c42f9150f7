"""What a tool of a run's MCP server is, and what it says."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from service.api.driving import Driven
from service.domain.errors import Invalid


@dataclass(frozen=True, slots=True)
class Answered:
    """What a tool says: text for the model, and the same as data; pictures as (media type, base64)."""

    text: str
    data: dict[str, Any]
    is_error: bool = False
    images: Sequence[tuple[str, str]] = ()

    @property
    def content(self) -> list[dict[str, Any]]:
        """Return it as the content blocks of MCP."""
        pictures = [{"type": "image", "data": data, "mimeType": mime} for mime, data in self.images]
        return [{"type": "text", "text": self.text}, *pictures]


@dataclass(frozen=True, slots=True)
class Tool:
    description: str
    arguments: type[BaseModel]
    do: Callable[[Driven, Any], Awaitable[Answered]]

    def parse(self, given: Any) -> BaseModel:
        """Raises Invalid ``bad_arguments``."""
        try:
            return self.arguments.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise Invalid("bad_arguments", f"{where}: {first['msg']}") from error
