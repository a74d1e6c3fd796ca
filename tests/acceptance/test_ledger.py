"""The ledger of a run: written beside it, edited by its user, and read after its store is lost."""

import shutil
from pathlib import Path

import pytest
import yaml

from mimir.orchestrator.patterns.ledger_file import LEDGER
from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, plan, step, worker, writes, wrote

TWO = plan(step("alpha"), step("alpine", "alpha"), title="Two small files")


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("plan.md", render(TWO))
    return desk


def body(text: str) -> list[str]:
    """Return the lines of a ledger without its time."""
    return [line for line in text.splitlines() if not line.startswith("- updated: ")]


def test_a_run_keeps_its_ledger_and_stores_the_edits_of_its_user(desk: Desk, tmp_path: Path):
    # Given a run that pauses at its limit after its first task
    parts = [wrote("alpha"), worker("alpine", writes("alpine.txt", "alpine\n"), "Done."), *REST]
    (tmp_path / "script.yaml").write_text(yaml.safe_dump({"parts": parts}), encoding="utf-8")
    desk.environ(MIMIR_MODEL="play:../script.yaml")
    paused = desk.type("execute", "plan.md", "--yes", "--max-calls", "5")
    assert paused.code == 75, paused.err
    file = desk.project / LEDGER
    assert "- status: paused" in file.read_text()
    assert body(file.read_text()) == body(desk.type("ledger").out)
    [done] = [line for line in file.read_text().splitlines() if line.startswith("- [x]")]
    assert done == "- [x] alpha: Write alpha.txt: executor → completed (score 100, executed)"

    # When its user edits the ledger, and the run continues
    edited = file.read_text().replace("## Handoff\n", "- Pattern: Keep it small\n\n## Handoff\n")
    file.write_text(edited.replace("(score 100", "(score 7"))
    ended = desk.type("resume", "--max-calls", "100")
    assert ended.code == 0, ended.err
    assert "Resuming from: done: alpha\n" in ended.err
    assert "- progress: 2/2" in file.read_text()
    assert "(score 7" not in file.read_text()

    # Then the note waits for its confirmation
    assert desk.type("ledger", "--sync").code == 2
    stored = desk.type("ledger", "--sync", "--yes")
    assert stored.out == "new note: Pattern: Keep it small\n"
    assert "Pattern: Keep it small (m-" in desk.type("ledger").out
    assert body(file.read_text()) == body(desk.type("ledger").out)
    assert "no edit" in desk.type("ledger", "--sync").err

    # And its removal rejects it
    file.write_text(
        "\n".join(line for line in file.read_text().splitlines() if "small (m-" not in line)
    )
    assert "rejected note: Keep it small" in desk.type("ledger", "--sync", "--yes").out
    assert "Keep it small" not in desk.type("ledger").out


def test_a_hand_off_is_given_to_the_next_plan_only(desk: Desk):
    pm = {"role": "pm", "turns": [{"text": render(TWO), "repeat": "forever"}]}
    with PlayServer({"parts": [pm, *REST]}) as server:
        desk.ask(server)
        assert desk.type("chain", "Write a file").code == 0
        assert desk.type("handoff", "Port 8080 is taken;\nuse 8081").code == 0
        asked = len(server.requests)
        assert desk.type("chain", "Write another file").code == 0
        given = [str(one.body) for one in server.requests[asked:]]
        assert "Port 8080 is taken" in given[0]
        asked = len(server.requests)
        assert desk.type("chain", "Write a third thing").code == 0
        assert "Port 8080" not in str([one.body for one in server.requests[asked:]])


def test_a_lost_store_leaves_a_plan_of_the_open_tasks_and_the_notes(desk: Desk, tmp_path: Path):
    (tmp_path / "script.yaml").write_text(
        yaml.safe_dump({"parts": [wrote("alpha"), *REST]}), encoding="utf-8"
    )
    desk.environ(MIMIR_MODEL="play:../script.yaml")
    assert desk.type("execute", "plan.md", "--yes", "--max-calls", "5").code == 75
    file = desk.project / LEDGER
    file.write_text(
        file.read_text() + "\n## Learnings\n\n- Pattern: Small files (m-1, from run-1)\n"
    )
    saved = tmp_path / "LEDGER.md"
    shutil.copy(file, saved)
    shutil.rmtree(desk.project / ".mimir")
    made = desk.type("ledger", "import", str(saved))
    assert made.code == 0, made.err
    assert made.out == "plan: chains/two-small-files/chain-output.md (1 open tasks)\nnotes: 1\n"
    assert "are lost" in made.err
    checked = desk.type("check", "two-small-files")
    assert checked.code == 65
    assert "alpine" in checked.out
    missing = desk.type("ledger", "import", "absent.md")
    assert (missing.code, "cannot be read" in missing.err) == (2, True)
