"""A process that dies around a question or an answer: one conversation, one question, one answer, no model call twice."""

import json
from pathlib import Path

import pytest
import yaml

from mimir.planning.renderer import render
from tests.support.crash.crash_points import DIED, Point
from tests.support.crash.process_forge import Forge, Order
from tests.support.killed_processes import Place, environment, repeated
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, calls, plan, step, worker, writes

ASKS = {"calls": [calls("ask_user", title="Which region?", text="Where?", options=["eu", "us"])]}
ASKER = worker(
    "c", writes("note.txt", "before\n"), ASKS, {"when": {"last_has": "us"}, **writes("c.txt", "c\nus\n")}, "Done.",
)  # fmt: skip
MOMENTS = ("{}:1:before", "{}:1:after", "{}-committed:1:after")
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
        point = Point.read(f"question:{die_at}") if die_at else None
        order = Order(
            words=words, cwd=self.root / "project", env=self.env, out=out, err=err, die_at=point
        )
        return self._forge.start(order).wait(), out.read_text(encoding="utf-8")


@pytest.mark.timeout(240)
def test_deaths_around_both_transactions_repeat_no_model_call(tmp_path: Path, forge: Forge):
    log, script = tmp_path / "requests.jsonl", tmp_path / "play.yaml"
    asking = step("c", tools=("write_file", "ask_user"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project/plan.md").write_text(render(plan(asking)), encoding="utf-8")
    script.write_text(yaml.safe_dump({"parts": [ASKER, *REST]}), encoding="utf-8")

    with PlayServer(script, log=log) as server:
        mimir = Processes(tmp_path, server.url, forge)

        # Given deaths around the transaction of the question
        words = ["execute", "plan.md", "--yes"]
        for moment in MOMENTS:
            assert mimir.run(*words, die_at=moment.format("asked"))[0] == DIED
            words = ["resume"]
        assert mimir.run("resume")[0] == 75
        (question,) = json.loads(mimir.run("inbox", "--json")[1])["questions"]

        # And around that of the answer
        for moment in MOMENTS:
            assert json.loads(mimir.run("inbox", "--json")[1])["questions"] == [question]
            death = mimir.run("answer", question["id"], "us", die_at=moment.format("answered"))
            assert death[0] == DIED
        assert mimir.run("answer", question["id"], "eu")[0] == 1
        code, said = mimir.run("resume")

    assert code == 0, said
    place = Place(project=tmp_path / "project", env=mimir.env)
    status = place.status()
    assert [task["attempts"] for task in status["tasks"]] == [1]  # type: ignore[attr-defined]
    assert place.result(str(status["run"]))["c.txt"] == "c\nus\n"
    assert repeated(log) == 0
    assert place.run("verify").returncode == 0
