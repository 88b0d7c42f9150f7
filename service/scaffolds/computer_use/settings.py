"""The settings that only a computer-use agent has."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid

DEFAULT_PICTURES = 3


class ComputerSettings(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    tools: list[str] = Field(default_factory=list[str], max_length=32)
    """Tools of the sandbox beside the screen, by the names that ``tool_agent`` has for them."""
    vocabulary: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """How the model says what to do; null: its provider's own, or plain tool calling where it has none."""
    confirm: Literal["auto_ack", "human", "deny"] = "auto_ack"
    """What becomes of a provider's safety checks: acknowledged, put before a person, or refused (which ends the run)."""
    history_pictures: Annotated[int, Field(ge=1, le=50)] = DEFAULT_PICTURES
    """Newest pictures that the model is sent; the record has them all."""
    chat: bool = False
    """Of dialect ``openai``: Chat Completions in place of Responses."""

    @classmethod
    def of(cls, settings: AgentSettings) -> "ComputerSettings":
        """Read them. Raises Invalid ``bad_settings``."""
        try:
            return cls.model_validate(settings.further)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise Invalid("bad_settings", f"settings.{where}: {first['msg']}", setting=where) from error
