"""Prices: from the maintained list into the user's own file, and from there into the money of a run."""

import stat
import sys
import tomllib
from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, plan, step, wrote

OWN = """# mine
[llm.prices."mine/model"]
input = 1
output = 2  # by contract
"""


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    desk.environ(MIMIR_CONFIG=tmp_path / "own.toml")
    (tmp_path / "own.toml").write_text(OWN, encoding="utf-8")
    return desk


def test_an_update_writes_dated_prices_and_leaves_the_users_own_and_the_unknown_alone(desk: Desk):
    own = desk.project.parent / "own.toml"
    said = desk.type("prices", "update", "gemini/gemini-2.5-pro", "mine/model", "ollama/qwen3")
    assert said.code == 0, said.err
    written = own.read_text(encoding="utf-8")
    prices = tomllib.loads(written)["llm"]["prices"]
    assert written.startswith(OWN)
    assert set(prices) == {"mine/model", "gemini/gemini-2.5-pro"}
    dated = prices["gemini/gemini-2.5-pro"]
    assert {"input", "output", "cached_input", "long_from", "long_input", "as_of"} <= dated.keys()
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert "kept, it is your own" in said.out
    assert "unknown" in said.out

    again = desk.type("prices", "update", "--json").json
    assert [one["state"] for one in again["prices"]] == ["unchanged"]
    assert own.read_text(encoding="utf-8") == written


def test_missing_price_package_is_refused_with_the_install_command(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    said = desk.type("prices", "update", "gpt-4.1")
    assert said.code == 78
    assert "pip install 'mimir[prices]'" in said.err
    assert (desk.project.parent / "own.toml").read_text(encoding="utf-8") == OWN


def test_the_cost_of_a_run_has_the_date_of_its_prices(desk: Desk):
    desk.write("one.md", render(plan(step("a"), title="One small file")))
    (desk.project.parent / "own.toml").write_text(
        '[llm.prices.small]\ninput = 1\noutput = 2\ncached_input = 0.1\nas_of = "2026-11-20"\n',
        encoding="utf-8",
    )
    with PlayServer({"parts": [wrote("a"), *REST]}) as server:
        done = desk.ask(server, MODEL="small").type("execute", "one.md", "--yes")
    assert done.code == 0, done.out + done.err
    assert "(prices of 2026-11-20)" in " ".join(desk.type("status").out.split())
    assert "(prices of 2026-11-20)" in " ".join(desk.type("report", "--full").out.split())
    assert desk.type("report", "--json").json["totals"]["prices_as_of"] == "2026-11-20"
    assert desk.type("replay", desk.status()["run"]).code == 0
