"""A process that dies around a question or an answer: one conversation, one question, one answer, no model call twice."""

import json
from pathlib import Path

import yaml

from mimir.planning.renderer import render
from tests.support.crash.crash_points import DIED, Point
from tests.support.crash.process_forge import Forge, Order
from tests.support.killed_processes import Place, environment, repeated
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, calls, plan, step, worker, writes, wrote

ASKS = {"calls": [calls("ask_user", title="Which region?", text="Where?", options=["eu", "us"])]}
ASKER = worker(
    "c", writes("note.txt", "before\n"), ASKS, {"when": {"last_has": "us"}, **writes("c.txt", "c\nus\n")}, "Done.",
)  # fmt: skip
MOMENTS = ("question:{}:1:before", "question:{}:1:after", "question:{}-committed:1:after")
"""Before the transaction writes, when it has written, after its commit."""


class Processes:
    """Processes of mimir, one after another."""

    def __init__(self, root: Path, url: str, forge: Forge) -> None:
        self.root = root
        self.env = environment(url, root)
        self._forge = forge
        self._number = 0

    def run(self, *words: str, die_at: str = "") -> tuple[int, str]:
        """Run a command; return its exit code and its standard output."""
        self._number += 1
        out, err = (self.root / f"{self._number}.{name}" for name in ("out", "err"))
        point = Point.read(die_at) if die_at else None
        order = Order(
            words=words, cwd=self.root / "project", env=self.env, out=out, err=err, die_at=point
        )
        return self._forge.start(order).wait(), out.read_text(encoding="utf-8")


def test_deaths_around_both_transactions_repeat_no_model_call(tmp_path: Path, forge: Forge):
    log, script = tmp_path / "requests.jsonl", tmp_path / "play.yaml"
    # Twelve tasks, of which one asks.
    asking = step("c", tools=("write_file", "ask_user"))
    others = [f"t{number}" for number in range(1, 12)]
    (tmp_path / "project").mkdir()
    (tmp_path / "project/plan.md").write_text(
        render(plan(asking, *map(step, others))), encoding="utf-8"
    )
    script.write_text(
        yaml.safe_dump({"parts": [ASKER, *map(wrote, others), *REST]}), encoding="utf-8"
    )

    with PlayServer(script, log=log) as server:
        mimir = Processes(tmp_path, server.url, forge)

        # Given deaths around the transaction of the question
        words = ["execute", "plan.md", "--yes"]
        for moment in MOMENTS:
            # One worker: a neighbour held in all three deaths would be given up as `worker_died`.
            died = mimir.run(*words, "--workers", "1", die_at=moment.format("asked"))
            assert died[0] == DIED
            words = ["resume"]
        code, paused = mimir.run("resume")
        (question,) = json.loads(mimir.run("inbox", "--json")[1])["questions"]
        assert code == 75, paused
        named = f"1 question is open ({question['id']}); 11 of 12 tasks are done."
        assert named in paused
        assert "Answer: mimir inbox" in paused

        # And around that of the answer
        for moment in MOMENTS:
            assert json.loads(mimir.run("inbox", "--json")[1])["questions"] == [question]
            death = mimir.run("answer", question["id"], "us", die_at=moment.format("answered"))
            assert death[0] == DIED
        assert mimir.run("answer", question["id"], "eu")[0] == 1
        before = turns(log)
        code, said = mimir.run("resume")

    assert code == 0, said
    place = Place(project=tmp_path / "project", env=mimir.env)
    status = place.status()
    # The conversation has one further turn for the answer, and its closing one; none was asked for twice
    assert (before, turns(log)) == ([0, 1], [0, 1, 2, 3])
    assert [task["attempts"] for task in status["tasks"]] == [1] * 12  # type: ignore[attr-defined]
    assert place.result(str(status["run"]))["c.txt"] == "c\nus\n"
    assert repeated(log) == 0
    assert place.run("verify").returncode == 0


def turns(log: Path) -> list[int]:
    """Return the turns of the worker that asks, as the model was asked for them."""
    made = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [call["turn"] for call in made if call["lane"].endswith("/c/1/worker")]


PROGRAM = """#!/usr/bin/python3
import json, sys
if "--version" in sys.argv:
    raise SystemExit(print("1.0"))
open("out.txt", "a").write("42\\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done.",
    "usage": {"input_tokens": 10, "output_tokens": 1}}))
"""
CONFIG = "description: Writes\ntype: cli\nprogram: claude\non_crash: ask\n"
INVOKE = ("invoke", "tool", "Write 42.", "--check", "grep -q 42 out.txt", "--deliverable", "out.txt")  # fmt: skip


def test_interrupted_program_is_repeated_only_with_consent_of_the_user(
    tmp_path: Path, forge: Forge
):
    files = {
        "project/README.md": "A project.\n",
        ".config/mimir/agents/tool/config.yaml": CONFIG,
        ".config/mimir/agents/tool/prompt.md": "Use the program for this task.\n",
        "programs/claude": PROGRAM,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "programs/claude").chmod(0o755)
    log = tmp_path / "requests.jsonl"

    with PlayServer({"parts": [*REST]}, log=log) as server:
        mimir = Processes(tmp_path, server.url, forge)
        mimir.env["PATH"] = f"{tmp_path}/programs:{mimir.env['PATH']}"

        died = mimir.run(*INVOKE, die_at="program:task-1/1/worker:1:after")
        assert died[0] == DIED
        assert mimir.run("resume")[0] == 75
        (question,) = json.loads(mimir.run("inbox", "--json")[1])["questions"]
        assert (question["agent"], question["title"]) == ("engine", "Start claude again?")
        assert mimir.run("answer", question["id"], "yes")[0] == 0
        code, said = mimir.run("resume")

    assert code == 0, said
    place = Place(project=tmp_path / "project", env=mimir.env)
    assert place.result(str(place.status()["run"]))["out.txt"] == "42\n"
    assert place.run("replay").returncode == 0
