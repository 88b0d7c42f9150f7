"""The token that ``serve`` leaves for the person who started it: ``<data>/client.json``, mode 0600."""

import json
from pathlib import Path

from service.store import projects, tokens
from service.store.database import Database
from service.supervisor.locks import write_whole


async def ensure_client_file(database_url: str, path: Path, url: str) -> None:
    """Write ``{"url", "token"}``, with the token that is there already if it still works."""
    db = Database(database_url, pool_size=1)
    try:
        async with db.transaction() as tx:
            project = await projects.get_default(tx)
            secret = _token_in(path)
            if secret is None or await tokens.authenticate(tx, secret) is None:
                _, secret = await tokens.mint(tx, project.id, ["admin"], "local, made by serve")
        write_whole(path, json.dumps({"url": url, "token": secret}).encode(), mode=0o600)
    finally:
        await db.close()


def _token_in(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_text())["token"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
