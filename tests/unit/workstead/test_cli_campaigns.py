"""``workstead campaigns``: files read, links shown once, figures in words, nothing of a terminal's from others' words."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server
from tests.unit.workstead.test_commands import HOSTILE, ok, page, server

__all__ = ["server"]
CAMPAIGN: dict[str, Any] = {"id": "cmp_1", "name": "panel", "form": "human_panel", "state": "draft", "items": 3}
SPEC = 'name = "panel"\nform = "human_panel"\ninstruction = "Rate."\n[selection]\nn = 3\n'


def test_a_file_becomes_a_campaign(server: Server, tmp_path: Path) -> None:
    spec = tmp_path / "panel.toml"
    spec.write_text(SPEC)
    result = server.run("campaigns", "create", str(spec), answers=[httpx.Response(201, json=CAMPAIGN)])
    assert result.stdout == "cmp_1: draft, 3 items\n"
    assert json.loads(server.script.bodies[0])["selection"] == {"n": 3}
    assert "idempotency-key" in server.script.requests[0].headers
    spec.write_text("name = ")
    assert server.run("campaigns", "create", str(spec), answers=[]).exit_code == 2


def test_links_are_printed_where_they_are_made(server: Server) -> None:
    rater = {"id": "rtr_1", "name": f"Ann{HOSTILE}", "pseudonym": "R1", "code": "wsi_x", "link": "/rate#wsi_x"}
    answers = [httpx.Response(201, json={"data": [rater]})]
    result = server.run("campaigns", "invite", "cmp_1", "Ann", "--category", "law", answers=answers)
    assert "/rate#wsi_x" in result.stdout
    assert "\x1b" not in result.stdout
    assert json.loads(server.script.bodies[0]) == {"raters": [{"name": "Ann", "categories": ["law"]}]}
    result = server.run("campaigns", "reinvite", "cmp_1", "rtr_1", answers=[ok(**rater)])
    assert "/rate#wsi_x" in result.stdout


def test_the_lead_reads_figures(server: Server) -> None:
    progress = {
        "waiting": {"second_pass": 2},
        "agreement": 0.944,
        "audit": {"n": 10, "agreeing": 9, "share": 0.9},
        "raters": [
            {"pseudonym": "R1", "name": HOSTILE, "state": "active", "qualified": False, "active_s": 90.0,
             "with_others": {"n": 3, "agreement": 1.0, "kappa": 0.5}}
        ],
    }  # fmt: skip
    result = server.run("campaigns", "show", "cmp_1", answers=[ok(**CAMPAIGN, progress=progress)])
    for said in ("94.4 %", "9 of 10 (90.0 %)", "2 second_pass", "not qualified", "0.50", "1.5"):
        assert said in result.stdout
    assert "\x1b" not in result.stdout


def test_a_scan_goes_on_until_nothing_is_left_to_look_at(server: Server) -> None:
    told = {"run_id": "run_1", "path": f"a{HOSTILE}.md", "where": "text", "name": "acme"}
    item = {"id": "cit_1", "position": 4, "identifying": [told]}
    answers = [ok(looked_at=20, left=1, identifying=1), ok(looked_at=0, left=1, identifying=1), page(item)]
    result = server.run("campaigns", "scan", "cmp_1", answers=answers)
    assert "acme" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["open", "cmp_1"], ("POST", "/v1/campaigns/cmp_1/open")),
        (["close", "cmp_1"], ("POST", "/v1/campaigns/cmp_1/close")),
        (["ask-models", "cmp_1"], ("POST", "/v1/campaigns/cmp_1/ask-models")),
        (["remove-rater", "cmp_1", "rtr_1"], ("DELETE", "/v1/campaigns/cmp_1/raters/rtr_1")),
    ],
)
def test_each_command_asks_for_its_own(server: Server, words: list[str], asked: tuple[str, str]) -> None:
    body = ok(id="x", kind="model_ratings", state="queued", handed_back=1)
    assert server.run("campaigns", *words, answers=[body]).exit_code == 0
    assert server.asked == [asked]


def test_exports_by_the_files_ending(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "ratings.csv"
    result = server.run("campaigns", "export", "cmp_1", str(target), answers=[httpx.Response(200, content=b"id\r\n")])
    assert result.exit_code == 0, result.output
    assert target.read_bytes() == b"id\r\n"
    assert dict(server.script.requests[0].url.params) == {"table": "ratings", "format": "csv"}
    assert server.run("campaigns", "export", "cmp_1", str(tmp_path / "x.pdf"), answers=[]).exit_code == 2


def test_the_list_shows_how_far_each_is(server: Server) -> None:
    result = server.run("campaigns", "list", answers=[page({**CAMPAIGN, "name": HOSTILE, "decided": 2})])
    assert "2/3" in result.stdout
    assert "\x1b" not in result.stdout
