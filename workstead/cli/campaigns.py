"""``workstead campaigns …``: people rate what agents delivered, and this is for who leads them."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.cli.common import emit, facts, in_words, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models_campaigns import Campaign, CampaignRater
from workstead.sync import Client

campaigns_app = typer.Typer(help="Have people rate what agents delivered.", no_args_is_help=True)

CampaignId = Annotated[str, typer.Argument(help="Campaign, as listed", show_default=False)]
RaterId = Annotated[str, typer.Argument(help="Rater, as `show` has it", show_default=False)]
Spec = Annotated[Path, typer.Argument(help="Campaign as TOML or JSON (docs/campaigns.md)", exists=True, dir_okay=False)]
Names = Annotated[list[str], typer.Argument(help="Raters' names; they see each other's never", show_default=False)]
Categories = Annotated[
    list[str] | None, typer.Option("--category", help="Only items of this category; repeatable, for all named here")
]
Target = Annotated[Path, typer.Argument(help="New file, .jsonl or .csv", show_default=False)]
Table = Annotated[str, typer.Option("--table", help="ratings or preferences")]


@campaigns_app.command("create")
@in_words
def create_campaign(spec: Spec, as_json: Json = False) -> None:
    """Make a campaign; its items are drawn now and stay."""
    with Client() as client:
        campaign = client.campaigns.create(_read(spec))
    _one(campaign, as_json)


@campaigns_app.command("list")
@in_words
def list_campaigns(limit: Limit = 50, as_json: Json = False) -> None:
    """List campaigns, newest first. With --json one object per line."""
    with Client() as client:
        found = list(client.campaigns.list(limit=limit))
    for campaign in found if as_json else ():
        emit(campaign)
    if not as_json:
        rows = [(c.id, c.name, c.form, c.state, f"{c.decided}/{c.items}", c.due_at) for c in found]
        out.print(plain_table(("campaign", "name", "form", "state", "decided", "due"), rows))


@campaigns_app.command("show")
@in_words
def show_campaign(campaign: CampaignId, as_json: Json = False) -> None:
    """Show how far a campaign is, how well its raters agree, and how long they took."""
    with Client() as client:
        found = client.campaigns.get(campaign)
    if as_json:
        emit(found)
        return
    progress: dict[str, Any] = found.progress or {}
    waiting = ", ".join(f"{n} {what}" for what, n in progress.get("waiting", {}).items())
    facts(
        {
            "campaign": f"{found.id} {found.name} ({found.form}, {found.state})",
            "decided": f"{found.decided} of {found.items}",
            "accepted": progress.get("accepted"),
            "waiting for": waiting or None,
            "agreement": _percent(progress.get("agreement")),
            "of all three values": _percent(progress.get("ternary")),
            "opposite": _percent(progress.get("hard_disagreement")),
            "audits agree": _checks(progress.get("audit")),
            "second passes agree": _checks(progress.get("second_pass")),
        }
    )
    rows = [_rater_row(r) for r in progress.get("raters", [])]
    names = ("rater", "name", "state", "id", "in hand", "rated", "skipped", "agrees", "κ", "active min", "wall min")
    out.print(plain_table(names, rows))


@campaigns_app.command("open")
@in_words
def open_campaign(campaign: CampaignId) -> None:
    """Let raters begin."""
    with Client() as client:
        _one(client.campaigns.open(campaign), as_json=False)


@campaigns_app.command("close")
@in_words
def close_campaign(campaign: CampaignId) -> None:
    """End the rating; items that are not decided stay so."""
    with Client() as client:
        _one(client.campaigns.close(campaign), as_json=False)


@campaigns_app.command("invite")
@in_words
def invite(campaign: CampaignId, names: Names, category: Categories = None, as_json: Json = False) -> None:
    """Add raters and print their links, once. A link works once, for 14 days."""
    specs = [{"name": name, "categories": category or []} for name in names]
    with Client() as client:
        added = client.campaigns.add_raters(campaign, specs)
        _links(client.url, added, as_json)


@campaigns_app.command("reinvite")
@in_words
def reinvite(campaign: CampaignId, rater: RaterId, as_json: Json = False) -> None:
    """Print another link for a rater; the former one and open sessions end."""
    with Client() as client:
        _links(client.url, [client.campaigns.invite(campaign, rater)], as_json)


@campaigns_app.command("remove-rater")
@in_words
def remove_rater(campaign: CampaignId, rater: RaterId) -> None:
    """End a rater's part: what is in hand goes to others, ratings stay and are marked."""
    with Client() as client:
        gone = client.campaigns.remove_rater(campaign, rater)
    line(f"{gone.pseudonym}: removed, {gone.handed_back} items handed back")


@campaigns_app.command("ask-models")
@in_words
def ask_models(campaign: CampaignId) -> None:
    """Let the models among the raters rate what there is for them; `workstead operations show` says how it goes."""
    with Client() as client:
        line(client.campaigns.ask_models(campaign).id)


@campaigns_app.command("scan")
@in_words
def scan(campaign: CampaignId) -> None:
    """Look for names of agents and models in what raters see, and list where they are."""
    with Client() as client:
        while (found := client.campaigns.scan(campaign))["looked_at"]:
            pass
        telling = [(i, told) for i in client.campaigns.items(campaign) for told in i.identifying or ()]
    note(f"{found['identifying']} items hold a name; {found['left']} could not be looked at yet")
    rows = [(i.position, told.get("path"), told.get("where"), told.get("name")) for i, told in telling]
    out.print(plain_table(("item", "file", "where", "name"), rows))


@campaigns_app.command("export")
@in_words
def export(campaign: CampaignId, target: Target, table: Table = "ratings") -> None:
    """Write all ratings or preferences to a file."""
    form = target.suffix.removeprefix(".")
    if form not in ("jsonl", "csv"):
        raise typer.BadParameter(f"{target.name}: the file ends in .jsonl or .csv")
    with Client() as client:
        size = client.campaigns.export(campaign, target, table=table, format=form)
    note(f"{target}: {size} bytes")


def _read(spec: Path) -> dict[str, Any]:
    text = spec.read_text(encoding="utf-8")
    try:
        return tomllib.loads(text) if spec.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{spec.name}: {error}") from error


def _one(campaign: Campaign, as_json: bool) -> None:
    emit(campaign) if as_json else line(f"{campaign.id}: {campaign.state}, {campaign.items} items")


def _links(url: str, added: Sequence[CampaignRater], as_json: bool) -> None:
    for rater in added:
        if as_json:
            emit(rater)
        else:
            line(f"{rater.pseudonym} {rater.name}: {url}{rater.link}")


def _rater_row(r: dict[str, Any]) -> tuple[object, ...]:
    others: dict[str, Any] = r.get("with_others") or {}
    kappa = others.get("kappa")
    minutes = [f"{r.get(name, 0.0) / 60:.1f}" for name in ("active_s", "wall_s")]
    state = "not qualified" if r.get("qualified") is False else r.get("state")
    return (r.get("pseudonym"), r.get("name"), state, r.get("rater_id"), r.get("in_hand"), r.get("submitted"),
            r.get("skipped"), _percent(others.get("agreement")), None if kappa is None else f"{kappa:.2f}", *minutes)  # fmt: skip


def _checks(found: dict[str, Any] | None) -> str | None:
    if not found or not found.get("n"):
        return None
    return f"{found['agreeing']} of {found['n']} ({_percent(found.get('share'))})"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f} %"
