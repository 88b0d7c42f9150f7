"""What settings show of themselves: never a secret (fault 38)."""

import traceback

import pytest

from service.settings import Settings

SECRETS = {
    "WORKSTEAD_DATABASE_URL": "postgresql://user:secret-of-the-database@host/db",
    "WORKSTEAD_MODELS__CREDENTIALS__ANTHROPIC": "sk-secret-of-a-provider",
    "WORKSTEAD_BRIDGE__TOKEN": "secret-of-the-bridge",
}


@pytest.mark.fault(38)
def test_an_exception_with_the_settings_in_it_hides_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (
        settings.models.credentials["anthropic"].get_secret_value()
        == SECRETS["WORKSTEAD_MODELS__CREDENTIALS__ANTHROPIC"]
    )
    try:
        raise RuntimeError(settings, settings.models, [settings.bridge])
    except RuntimeError as error:
        said = "".join(traceback.format_exception(error)) + repr(settings) + str(settings) + repr(error.args)
    assert "secret-of" not in said
    assert "secret-of" not in settings.model_dump_json()
