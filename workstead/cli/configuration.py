"""``workstead config``: where this command would go, and why."""

import os

from workstead.cli.common import emit, facts, in_words
from workstead.cli.options import Json
from workstead.config import CLIENT_FILE, NotConfigured, default_data_dir, resolve


@in_words
def config(as_json: Json = False) -> None:
    """Show which service and token the environment and the local files give. The token itself is never shown."""
    file = default_data_dir() / CLIENT_FILE
    found: dict[str, object] = {
        "WORKSTEAD_URL": os.environ.get("WORKSTEAD_URL"),
        "WORKSTEAD_TOKEN": "set" if os.environ.get("WORKSTEAD_TOKEN") else None,
        "data_dir": str(default_data_dir()),
        "client_file": f"{file} ({'there' if file.exists() else 'not there'})",
    }
    try:
        found["service"] = resolve().url
    except NotConfigured as error:
        found["problem"] = str(error)
    if as_json:
        emit(found)
    else:
        facts(found)
