"""The same plan on the same files asks the same questions, wherever and whenever it runs: no clock, id or path of ours enters a prompt."""

import json
from pathlib import Path

import pytest

from tests.support.run_facts import Facts
from tests.support.whole_run import (
    FAIL,
    README,
    Curtain,
    Journey,
    calls,
    check,
    plan,
    qc,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

LINES = "".join(f"line {n}\n" for n in range(9))
TEST = "import sys\nprint(__file__, sys.path, sys.executable)\nsys.exit(0 if open('a.txt').read() == 'a\\n' else 1)\n"


def shared(task: str) -> dict[str, object]:
    return {"calls": [calls("edit_file", path="shared.txt", old="line 3\n", new=f"of {task}\n")]}


async def go(where: Path, patch: pytest.MonkeyPatch, **flags: object) -> Journey:
    """A retry after a red check, one after a conflict, a failure, and a task that builds on another."""
    tasks = plan(
        step("a", checks=(check("python", "-S", "tests/test_a.py"),), max_retries=1),
        step("b", "a", context_files=("a.txt", "shared.txt")),
        step("bad", max_retries=1),
        step("one", checks=(check("grep", "-q", "of one", "shared.txt"),)),
        step("two", checks=(check("grep", "-q", "of two", "shared.txt"),)),
    )
    look = {"calls": [calls("run", command="pwd; ls; git log --format=%s; git status --short")]}
    parts = [
        worker("a", writes("a.txt", "no\n"), look, "[call:2] I am done.", attempt=1),
        worker("a", look, writes("a.txt", "a\n"), "Mended.", attempt=2),
        wrote("b"),
        worker("bad", writes("bad.txt", "1\n"), "One.", attempt=1),
        worker("bad", writes("bad.txt", "2\n"), "Two.", attempt=2),
        worker("one", shared("one"), "Done."),
        worker("two", shared("two"), "Done.", attempt=1),
        worker("two", look, writes("shared.txt", "of one\nof two\n"), "Done.", attempt=2),
        qc("bad", FAIL),
    ]
    curtain = Curtain(patch)
    curtain.hold("bad", until="b").hold("one", until="bad").hold("two", until="one")
    files = {**README, "shared.txt": LINES, "tests/test_a.py": TEST}
    return await travel(start(where, files), tasks, parts, workers=8, **flags)


def questions(facts: Facts) -> dict[str, list[str]]:
    """Lane, without the run's id → the hashes of its requests."""
    found: dict[str, list[str]] = {}
    for row in facts.nodes["Call"]:
        lane = str(row["lane"]).removeprefix(f"{facts.run}/")
        found.setdefault(lane, []).append(str(row["requestHash"]))
    return found


async def test_prompts_of_every_transcript_are_equal_at_another_path_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        first = await go(tmp_path / "here", patch)
    with monkeypatch.context() as patch:
        model = f"play:{tmp_path / 'here' / 'project.play.yaml'}"  # its name is part of a request
        second = await go(tmp_path / "and there", patch, llm__model=model)

    assert (
        first.statuses
        == second.statuses
        == {
            "a": "completed",
            "b": "completed",
            "bad": "failed",
            "one": "completed",
            "two": "completed",
        }
    )
    asked, again = questions(first.facts), questions(second.facts)
    assert asked.keys() == again.keys()
    assert {lane for lane in asked if asked[lane] != again[lane]} == set()

    # No prompt holds a path, an id or a commit of ours
    facts = first.facts
    foreign = [str(tmp_path), facts.run, ".mimir/work"]
    foreign += [
        str(row["integratedCommit"])[:12]
        for row in facts.tasks.values()
        if row.get("integratedCommit")
    ]
    models = [row for row in facts.nodes["Call"] if row["kind"] == "model"]
    said = [str(json.loads(str(row["deltaJson"]))["messages"]) for row in models]
    assert [word for word in foreign if any(word in text for text in said)] == []
