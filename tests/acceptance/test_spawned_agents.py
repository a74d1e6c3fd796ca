"""Agents that spawn agents: depth, chain, one budget for the tree, one answer for one call."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mimir.bootstrap.clock import SystemClock
from mimir.store.sqlite.read_ops import view_file
from tests.support.agent_corpus import answer
from tests.support.cli_runner import Desk
from tests.support.whole_run import REST, calls, worker

CONFIG = """name: {name}
description: "Judges one thing."
tools: [Read]
may_spawn: true
"""


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    """Return a project with two agents of the user that may spawn."""
    desk.write("README.md", "# A project\n")
    for name in ("lead", "helper"):
        folder = tmp_path / "agents" / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(CONFIG.format(name=name), encoding="utf-8")
        (folder / "prompt.md").write_text(
            f"Work as {name}: judge what you are given.\n", encoding="utf-8"
        )
    settings = tmp_path / "mimir.toml"
    settings.write_text(f'[agents]\npath = ["{tmp_path}/agents"]\n', encoding="utf-8")
    model = f"play:{tmp_path}/script.yaml"
    desk.environ(HOME=tmp_path / "home", MIMIR_CONFIG=settings, MIMIR_MODEL=model)
    return desk


def spawn(agent: str, task: str) -> dict[str, object]:
    return {"calls": [calls("spawn_agent", chatmode=agent, task=task)]}


def load(desk: Desk, label: str) -> list[dict[str, Any]]:
    with view_file(desk.project / ".mimir/mimir.db", SystemClock()) as reads:
        return [dict(row) for row in reads.find(label, {}, order=("id",))]


def test_an_agent_consults_a_specialist_that_can_spawn_no_further_one(desk: Desk, tmp_path: Path):
    # Given a lead that asks a helper and then itself, and a helper that asks the lead
    helper = worker(
        "task-1",
        spawn("lead", "Look again."),
        answer("Three."),
        when={"brief_has": "Count the words"},
    )
    lead = worker(
        "task-1",
        spawn("helper", "Count the words."),
        spawn("lead", "Judge it for me."),
        answer("The helper counted three."),
        when={"brief_has": "Judge"},
    )
    script = {"parts": [helper, lead, *REST]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")

    # When the lead is invoked
    done = desk.type("invoke", "lead", "Judge the page.", "--json")

    # Then the helper is a run below it, and each other call is refused by name
    assert done.code == 0, done.err
    runs = {one["agent"]: one for one in load(desk, "Run")}
    assert sorted(runs) == ["helper", "lead"]
    assert (runs["helper"]["depth"], runs["helper"]["spawnedBy"]) == (1, "lead")
    assert runs["lead"]["treeTokens"] == runs["helper"]["tokensUsed"]
    assert runs["lead"]["treeCalls"] == runs["helper"]["callsUsed"] == 2
    spawned = [one for one in load(desk, "Call") if one["tool"] == "spawn_agent"]
    texts = {
        one["runId"]: one["valueJson"] for one in spawned if "refused" in one["valueJson"].lower()
    }
    assert "depth 2 is the maximum" in texts[runs["helper"]["runId"]]
    assert "Refused (chain)" in texts[runs["lead"]["runId"]]
    answered = next(one for one in spawned if "Three." in one["valueJson"])
    assert answered["runId"] == runs["lead"]["runId"]
    (session,) = load(desk, "Session")
    assert session["refusalsJson"] == '{"chain":1}'
    # The helper knows the goal of the lead.
    (above,) = [
        one
        for one in load(desk, "Artifact")
        if one["kind"] == "definitions" and one["runId"] == runs["helper"]["runId"]
    ]
    assert "Judge the page." in above["text"]
    # The tool is listed for the lead alone.
    given = [*load(desk, "Call"), *load(desk, "Artifact")]
    listed = {one["runId"] for one in given if "Consult a specialist" in str(one)}
    assert listed == {runs["lead"]["runId"]}
    shown = desk.type("metrics", "--session", session["id"], "--json").json
    assert (shown["calls_left"], shown["metrics"]["success_rate"]) == (19, 1.0)
    assert shown["metrics"]["refusals"] == {"chain": 1}
    assert "success rate: 1.0" in desk.type("metrics", "--session", session["id"]).out
    # Each run verifies and replays by itself.
    for run in runs.values():
        assert desk.type("verify", run["runId"]).code == 0
        assert desk.type("replay", run["runId"]).code == 0


def test_a_tree_of_agents_has_the_budget_of_its_root(desk: Desk, tmp_path: Path):
    helper = worker("task-1", answer("Three."), when={"brief_has": "Count the words"})
    lead = worker("task-1", spawn("helper", "Count the words."), answer("Done."))
    script = {"parts": [helper, lead, *REST]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")

    # The call of the helper is the second of the tree; the third one is too many.
    done = desk.type("invoke", "lead", "Judge the page.", "--max-calls", "2")

    assert done.code == 75, done.err
    assert "2 model calls" in done.out + done.err
    assert desk.type("status").code == 0


def test_a_session_pauses_its_agents_at_its_budget_and_continues_when_it_is_raised(
    desk: Desk, tmp_path: Path
):
    # Given a session with three model calls, and agents with two calls each
    reads = {"calls": [calls("read_file", path="README.md")]}
    script = {"parts": [worker("task-1", reads, answer("Read.")), *REST]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    desk.environ(MIMIR_SESSION="s-small", MIMIR_AGENTS__SESSION_MAX_CALLS=3)

    # When the second agent needs the fourth call
    assert desk.type("invoke", "lead", "Judge the page.").code == 0
    paused = desk.type("invoke", "helper", "Read the page aloud.", "--json")

    # Then it pauses, and a raised limit lets it end
    assert paused.code == 75, paused
    assert "The budget of the session s-small is used up: 3 model calls" in paused.out
    assert "budget: calls 3 of 3" in desk.type("metrics", "--session", "s-small").out
    desk.environ(MIMIR_AGENTS__SESSION_MAX_CALLS=10)
    assert desk.type("resume").code == 0
    (session,) = load(desk, "Session")
    assert session["treeCalls"] == sum(one["callsUsed"] for one in load(desk, "Run")) == 4
    assert session["treeTokens"] == sum(one["tokensUsed"] for one in load(desk, "Run"))
