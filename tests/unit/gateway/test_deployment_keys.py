"""The operator's own keys: where they go, for whom, and that a mistake in the file repeats none of them."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from service.domain.credentials import Purpose, Use, may_serve
from service.gateway.deployment_keys import read_deployment_keys
from service.models.catalogue import addresses

FILE = """
[model]
anthropic = "sk-model"
local = {key = "sk-local", base_url = "http://10.0.0.5:8000/v1", projects = ["lab", "default"]}
[judge]
anthropic = "sk-judge"
openai = {key = "sk-all", projects = ["*"]}
"""


def write(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "keys.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_key_goes_to_its_address_and_its_projects_only(tmp_path: Path) -> None:
    keys = read_deployment_keys(write(tmp_path, FILE), {"xai": SecretStr("sk-env")})
    home = addresses()["anthropic"]
    assert keys.find("default", "anthropic", home, Use.AGENT) == "sk-model"
    assert keys.find("default", "anthropic", f"{home}/", Use.AGENT) == "sk-model"
    assert keys.find("default", "anthropic", "https://evil.example.com", Use.AGENT) is None
    assert keys.find("other", "anthropic", home, Use.AGENT) is None
    assert keys.find("lab", "local", "http://10.0.0.5:8000/v1", Use.AGENT) == "sk-local"
    assert keys.find("default", "xai", addresses()["xai"], Use.CLIENT) == "sk-env"


def test_a_judges_key_serves_judges_only(tmp_path: Path) -> None:
    keys = read_deployment_keys(write(tmp_path, FILE), {})
    assert keys.find("default", "anthropic", addresses()["anthropic"], Use.JUDGE) == "sk-judge"
    assert keys.find("any", "openai", addresses()["openai"], Use.JUDGE) == "sk-all"
    assert keys.find("any", "openai", addresses()["openai"], Use.AGENT) is None
    assert not may_serve(Purpose.JUDGE, Use.AGENT)
    assert not may_serve(Purpose.JUDGE, Use.CLIENT)
    assert not may_serve(Purpose.SERVICE, Use.AGENT)
    assert not may_serve(Purpose.MODEL, Use.SERVICE)
    assert may_serve(Purpose.MODEL, Use.JUDGE)


@pytest.mark.parametrize(
    "text", ['[model]\nnobody = "sk-SECRET"\n', '[agent]\nanthropic = "sk-SECRET"\n', '[model]\nanthropic = ["sk-SECRET"]\n',
             '[model]\nanthropic = "sk-SECRET'],
)  # fmt: skip
def test_a_mistake_is_said_without_the_key(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the words differ
        read_deployment_keys(write(tmp_path, text), {})
    assert "SECRET" not in str(error.value)


def test_a_file_for_others_eyes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="chmod"):
        read_deployment_keys(write(tmp_path, FILE, 0o640), {})
