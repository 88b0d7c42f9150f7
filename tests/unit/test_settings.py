"""What settings show of themselves: never a secret (fault 38)."""

import traceback

import pytest
from pydantic import SecretStr

from service.settings import OtelSettings, Settings

SECRETS = {
    "WORKSTEAD_DATABASE_URL": "postgresql://user:secret-of-the-database@host/db",
    "WORKSTEAD_MODELS__CREDENTIALS__ANTHROPIC": "sk-secret-of-a-provider",
    "WORKSTEAD_BRIDGE__TOKEN": "secret-of-the-bridge",
    "WORKSTEAD_OTEL__HEADERS": "authorization=secret-of-the-collector",
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


def test_the_standard_variables_serve_where_ours_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert Settings().otel.endpoint is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x-team = blue")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "lab")
    otel = Settings().otel
    assert (otel.endpoint, otel.service_name) == ("http://collector:4318", "lab")
    assert otel.header_pairs() == {"api-key": "a b", "x-team": "blue"}
    monkeypatch.setenv("WORKSTEAD_OTEL__ENDPOINT", "https://ours:4318")
    assert Settings().otel.endpoint == "https://ours:4318"


@pytest.mark.parametrize("headers", ["no-value", "a b=c", "a=c%0d%0ab: d"])
def test_headers_that_are_none_are_refused(headers: str) -> None:
    with pytest.raises(ValueError, match="WORKSTEAD_OTEL__HEADERS"):
        OtelSettings(headers=SecretStr(headers)).header_pairs()
