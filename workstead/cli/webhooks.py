"""``workstead webhooks …``: who is told of what, and what came of it."""

from typing import Annotated

import typer

from workstead.cli.common import emit, in_words, labels_of, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import Delivery, Webhook
from workstead.sync import Client
from workstead.terminal import one_line

webhooks_app = typer.Typer(help="Tell other programs what happened.", no_args_is_help=True)

WebhookId = Annotated[str, typer.Argument(help="Webhook, as listed", show_default=False)]
DeliveryId = Annotated[str, typer.Argument(help="Delivery, as listed", show_default=False)]
Url = Annotated[str, typer.Argument(help="https URL on a public address", show_default=False)]
Events = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        help="run.running, run.awaiting_confirmation, run.held, run.done, grading.done, operation.done, evaluation.held, "
        "evaluation.budget; default: all",
    ),
]
Labels = Annotated[list[str] | None, typer.Option("--label", help="Only of what bears KEY=VALUE; repeatable")]
Note = Annotated[str, typer.Option("--note", help="What it is for")]
State = Annotated[str | None, typer.Option(help="pending, delivered or dead")]


@webhooks_app.command("list")
@in_words
def list_webhooks(as_json: Json = False) -> None:
    """List webhooks. With --json one object per line."""
    with Client() as client:
        found = list(client.webhooks.list())
    for webhook in found if as_json else ():
        emit(webhook)
    if not as_json:
        rows = [(w.id, w.url, ", ".join(w.events), _health(w), w.note or None) for w in found]
        out.print(plain_table(("webhook", "url", "events", "state", "note"), rows))


@webhooks_app.command("create")
@in_words
def create_webhook(
    url: Url, event: Events = None, label: Labels = None, for_what: Note = "", as_json: Json = False
) -> None:
    """Make a webhook and print its secret, once; receivers check deliveries with workstead.webhooks.verify."""
    with Client() as client:
        webhook = client.webhooks.create(url, event or ["*"], labels=labels_of(label), note=for_what)
    _secret(webhook, as_json)


@webhooks_app.command("rotate")
@in_words
def rotate_webhook(webhook: WebhookId, as_json: Json = False) -> None:
    """Give a webhook a new secret; for 24 hours deliveries are signed with the old one too."""
    with Client() as client:
        _secret(client.webhooks.rotate(webhook), as_json)


@webhooks_app.command("test")
@in_words
def try_webhook(webhook: WebhookId, as_json: Json = False) -> None:
    """Send a test delivery."""
    with Client() as client:
        _delivery(client.webhooks.test(webhook), as_json)


@webhooks_app.command("enable")
@in_words
def enable_webhook(webhook: WebhookId) -> None:
    """Enable a webhook, also one that failed too often, and try at once what waits."""
    with Client() as client:
        line(f"{client.webhooks.change(webhook, enabled=True).id}: enabled")


@webhooks_app.command("disable")
@in_words
def disable_webhook(webhook: WebhookId) -> None:
    """Queue and send nothing more."""
    with Client() as client:
        line(f"{client.webhooks.change(webhook, enabled=False).id}: disabled")


@webhooks_app.command("delete")
@in_words
def delete_webhook(webhook: WebhookId) -> None:
    """Delete a webhook with its deliveries."""
    with Client() as client:
        client.webhooks.delete(webhook)
    line(f"{webhook}: deleted")


@webhooks_app.command("deliveries")
@in_words
def list_deliveries(webhook: WebhookId, state: State = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List deliveries, newest first: what waits, and what ended in the last days. With --json one object per line."""
    with Client() as client:
        found = list(client.webhooks.deliveries(webhook, state=state, limit=limit))
    for delivery in found if as_json else ():
        emit(delivery)
    if not as_json:
        rows = [(d.id, d.type, d.state, d.tries, d.last_status, d.last_error, d.created_at) for d in found]
        out.print(plain_table(("delivery", "type", "state", "tries", "status", "error", "made"), rows))


@webhooks_app.command("redeliver")
@in_words
def redeliver(webhook: WebhookId, delivery: DeliveryId, as_json: Json = False) -> None:
    """Send a delivery again, however it ended."""
    with Client() as client:
        _delivery(client.webhooks.redeliver(webhook, delivery), as_json)


def _secret(webhook: Webhook, as_json: bool) -> None:
    if as_json:
        emit(webhook)
        return
    note(f"webhook {webhook.id}; its secret is shown this once")
    line(webhook.secret or "")


def _delivery(delivery: Delivery, as_json: bool) -> None:
    emit(delivery) if as_json else line(f"{delivery.id}: {one_line(delivery.type, 60)} {delivery.state}")


def _health(webhook: Webhook) -> str:
    if not webhook.enabled:
        return f"disabled after {webhook.failures} failures" if webhook.failures else "disabled"
    return f"{webhook.failures} failures in a row" if webhook.failures else "ok"
