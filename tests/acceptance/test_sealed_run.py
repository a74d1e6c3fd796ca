"""A sealed run: it verifies unchanged, its report can be written again, and each change in it is named."""

import asyncio
import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.domain.json_value import JsonObject, as_object, as_objects, as_texts
from mimir.domain.run import RunBudget
from mimir.errors import UsageError
from mimir.store.operations import evidence
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import NodeLabel, pack, unpack
from mimir.store.sealing.row_digests import LABELS, VOLATILE, changed_rows, iterate_rows
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support import stores
from tests.support.clock import FrozenClock
from tests.support.projects import git, write_files
from tests.support.whole_run import (
    PLAN_PATH,
    Curtain,
    Journey,
    Part,
    holds,
    opened,
    plan,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

LINES = "".join(f"line {n}\n" for n in range(12))
TASKS = (
    step("first", checks=(holds("both.txt", "line of first"),)),
    step("second", checks=(holds("both.txt", "line of second"),)),
    step("third", "first", max_retries=1),
    step("bad"),
    step("never", "bad"),
)


@dataclass(frozen=True, kw_only=True)
class Travelled:
    """The project of a run, and its result."""

    project: Path
    parts: tuple[Part, ...]
    journey: Journey

    @property
    def run(self) -> str:
        return self.journey.ending.run

    async def problems(self, seal: str = "", run: str = "") -> tuple[str, ...]:
        async with opened(self.project, self.parts) as mimir:
            found = await mimir.verify(run or self.run, seal)
        assert found.ok is (found.problems == ())
        return found.problems

    def change(self, statement: str, *values: str) -> None:
        """Change the store behind mimir's back."""
        path = self.project / ".mimir" / "mimir.db"
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            assert connection.execute(statement, values).rowcount > 0


def edit(task: str, line: int) -> Part:
    text = LINES.replace(f"line {line}\n", f"line of {task}\n")
    return worker(task, writes("both.txt", text), f"{task} has its line.")


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Travelled:
    """A run with a merge, a retry, a failure and a blocked task."""
    project = start(tmp_path_factory.mktemp("sealed"), {"README.md": "Hi\n", "both.txt": LINES})
    write_files(project, {PLAN_PATH: "# Plan\n"})
    parts = (
        edit("first", 1),
        edit("second", 10),
        worker("third", writes("third.txt", "wrong\n"), "All tests pass.", attempt=1),
        wrote("third", attempt=2),
        worker("bad", writes("bad.txt", "no\n"), "It is bad."),
    )
    with pytest.MonkeyPatch.context() as patch:
        Curtain(patch).hold("second", until="first")
        journey = asyncio.run(travel(project, plan(*TASKS), parts, workers=4))
    return Travelled(project=project, parts=parts, journey=journey)


@pytest.fixture
def sealed(once: Travelled, tmp_path: Path) -> Travelled:
    """A copy that may be changed."""
    project = tmp_path / "project"
    shutil.copytree(once.project, project, symlinks=True)
    return Travelled(project=project, parts=once.parts, journey=once.journey)


async def test_untouched_run_verifies_with_the_seal_of_its_report(once: Travelled):
    seal = once.journey.ending.seal
    assert once.journey.statuses == {
        "first": "completed", "second": "completed", "third": "completed", "bad": "failed", "never": "blocked",
    }  # fmt: skip
    assert f"- Seal: `{seal}`" in once.journey.report
    assert await once.problems(seal) == ()
    assert await once.problems("0" * 64) != ()


async def test_report_is_written_again_byte_for_byte(once: Travelled):
    async with opened(once.project, once.parts) as mimir:
        _, text = await mimir.report(once.run)
    assert text == once.journey.report
    assert str(once.project) not in text
    assert str(once.project) not in json.dumps(once.journey.report_json)


async def test_report_has_the_claim_that_was_false(once: Travelled):
    claims = [d for d in as_objects(once.journey.report_json["decisions"]) if d["kind"] == "claim"]
    assert [(d["task"], d["attempt"]) for d in claims] == [("third", 1)]
    assert as_texts(claims[0]["detail"])[0] == "All tests pass."


async def test_run_with_reused_tasks_verifies(sealed: Travelled):
    kept = plan(*(task for task in TASKS if task.id in ("first", "second", "third")))
    async with opened(sealed.project, sealed.parts) as mimir:
        # An edit of a result would be sealed again.
        sealed.change("UPDATE nodes SET props = replace(props, 'passedChecks', 'x') WHERE label = 'Task'")  # fmt: skip
        with pytest.raises(UsageError, match="differs from its seals"):
            await mimir.create_run(
                kept, PLAN_PATH, only=(), limits=RunBudget(), from_run=sealed.run
            )
        sealed.change("UPDATE nodes SET props = replace(props, '\"x\"', '\"passedChecks\"') WHERE label = 'Task'")  # fmt: skip
        new = await mimir.create_run(
            kept, PLAN_PATH, only=(), limits=RunBudget(), from_run=sealed.run
        )
        ending = await mimir.drive(new, workers=2, apply="never", limits=RunBudget(), resumed=False)
    assert ending.exit_code == 0
    assert await sealed.problems(ending.seal, new) == ()


async def test_each_changed_byte_of_the_store_is_named_by_its_record(sealed: Travelled):
    path = sealed.project / ".mimir" / "mimir.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT key, id, props FROM nodes WHERE label = 'Evidence'"
        ).fetchall()
    assert len(rows) > 20
    for number, (key, id, props) in enumerate(rows):
        at = (number * 37) % len(props)
        other = "0" if props[at] != "0" else "1"
        sealed.change(
            f"UPDATE nodes SET props = ? WHERE key = {key}", props[:at] + other + props[at + 1 :]
        )
        found = await sealed.problems()
        assert any(problem.startswith(f"{id}: ") for problem in found), (id, at, found)
        sealed.change(f"UPDATE nodes SET props = ? WHERE key = {key}", props)
    assert await sealed.problems() == ()


def edited(row: Row, rng: random.Random) -> Row:
    """A copy of a node with one property changed, removed, or of another type."""
    name = rng.choice(sorted(name for name in row if name != "id" and name not in VOLATILE))
    value, other = row[name], rng.choice(["", "x", 0, 1, True, None, 7.5])
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        other = value[:at] + ("0" if value[at] != "0" else "1") + value[at + 1 :]
    elif pack(other) == pack(value):
        other = "another"
    return {**row, name: other}


OF_EVERY_RUN = [label for label in LABELS if label is not NodeLabel.QUESTION]


async def test_each_of_1000_random_edits_of_a_node_is_named(once: Travelled):
    rng = random.Random(35)

    def load(reads: ReadOps) -> tuple[JsonObject, Mapping[NodeLabel, Sequence[Row]]]:
        (record,) = evidence.records(reads, f"{once.run}/run")
        return as_object(unpack(record.body)), {
            label: list(iterate_rows(reads, once.run, label)) for label in OF_EVERY_RUN
        }

    path = once.project / ".mimir" / "mimir.db"
    async with stores.opened(SqliteStore(path, FrozenClock())) as store:
        body, nodes = await store.read(load)
    sealed = as_object(body["nodes"])
    assert all(nodes.values())
    for _ in range(1000):
        label = rng.choice(OF_EVERY_RUN)
        rows = list(nodes[label])
        at = rng.randrange(len(rows))
        rows[at] = edited(rows[at], rng)
        found = changed_rows(once.run, rows, sealed[label.value])
        assert found == [f"{rows[at]['id']}: this node was changed"]
    for label, rows in nodes.items():
        assert changed_rows(once.run, rows, sealed[label.value]) == []
        assert changed_rows(once.run, rows[1:], sealed[label.value]) != []
        assert changed_rows(once.run, [*rows, rows[-1]], sealed[label.value]) != []


async def test_edited_outcome_prompt_transcript_or_event_is_named_with_and_without_the_seal(
    sealed: Travelled,
):
    run, seal = sealed.run, sealed.journey.ending.seal
    for id, old, new in (
        (run, '"outcome":"failed"', '"outcome":"completed"'),
        (f"{run}/third", "third", "th1rd"),
        (f"{run}/first/1/worker#00001", "both.txt", "b0th.txt"),
        (f"{run}#00000001", "first", "f1rst"),
        (f"{run}/bad", "failed", "f4iled"),
    ):
        change = "UPDATE nodes SET props = replace(props, ?, ?) WHERE id = ?"
        sealed.change(change, old, new, id)
        for given in ("", seal):
            assert any(p.startswith(f"{id}: ") for p in await sealed.problems(given)), id
        sealed.change(change, new, old, id)
    assert await sealed.problems(seal) == ()


async def test_missing_record_or_changed_report_is_named(sealed: Travelled):
    report = sealed.project / sealed.journey.ending.report_path
    text = report.read_text()
    report.write_text(text.replace("failed", "completed"))
    assert [p for p in await sealed.problems() if "this report is not the one" in p]
    report.write_text(text)
    assert await sealed.problems() == ()
    sealed.change("DELETE FROM nodes WHERE id = ?", f"{sealed.run}/run#00000")
    assert [p for p in await sealed.problems() if "the record of the run is gone" in p]


async def test_each_lost_edge_and_each_changed_note_or_preamble_is_named(sealed: Travelled):
    path = sealed.project / ".mimir" / "mimir.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        edges = connection.execute("SELECT source, type, target FROM edges").fetchall()
        nodes = connection.execute(
            "SELECT id FROM nodes WHERE label IN ('Memory', 'Preamble')"
        ).fetchall()
    assert {kind for _, kind, *_ in edges} >= {"HAS_RUN", "HAS_TASK", "DEPENDS_ON", "HAS_ATTEMPT", "HAS_VERDICT", "BACKED_BY", "PRODUCED", "USED_PREAMBLE", "ABOUT"}  # fmt: skip
    for source, kind, target in {edge[1]: edge for edge in edges}.values():
        where = "WHERE source = ? AND type = ? AND target = ?"
        sealed.change(f"DELETE FROM edges {where}", source, kind, target)
        found = await sealed.problems()
        assert any("edge" in one or target in one for one in found), (source, kind, found)
        sealed.change(
            "INSERT INTO edges (source, type, target) VALUES (?, ?, ?)", source, kind, target
        )
    for (id,) in nodes:
        change = "UPDATE nodes SET props = replace(props, ?, ?) WHERE id = ?"
        sealed.change(change, '"name":"', '"name":"x', id)
        assert f"{id}: this node was changed" in await sealed.problems()
        sealed.change(change, '"name":"x', '"name":"', id)
    assert await sealed.problems(sealed.journey.ending.seal) == ()


async def test_a_seal_covers_the_files_of_report_and_plan(sealed: Travelled):
    seal, plan_file = sealed.journey.ending.seal, sealed.project / PLAN_PATH
    report = sealed.project / sealed.journey.ending.report_path
    report.unlink()
    plan_file.write_text("# Another\n")
    found = await sealed.problems(seal)
    assert [one for one in found if "this report is gone" in one]
    assert f"{PLAN_PATH}: this plan is not the one that was executed" in found
    # Without a seal, a copy of the store and a plan for the next run verify.
    assert await sealed.problems() == ()


async def test_each_changed_object_of_the_result_is_found(sealed: Travelled):
    history = sealed.project / ".mimir" / "work" / "history.git"
    said = git(sealed.project, "rev-list", "--objects", f"mimir/{sealed.run}")
    ids = [line.split(" ")[0] for line in said.splitlines()]
    places = [(id, history / "objects" / id[:2] / id[2:]) for id in ids]
    own = [(id, file) for id, file in places if file.is_file()]
    assert len(own) > 8
    for id, file in own:
        whole = file.read_bytes()
        file.chmod(0o644)
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        found = await sealed.problems()
        assert any(id[:12] in problem for problem in found), (id, found)
        assert all(problem.startswith(sealed.run) for problem in found)
        file.write_bytes(whole)
    assert await sealed.problems() == ()


async def test_changed_answer_is_named(sealed: Travelled):
    id = f"{sealed.run}/first/1/answer"
    sealed.change(
        "UPDATE nodes SET props = replace(props, 'has its line', 'has no line') WHERE id = ?", id
    )
    assert [p for p in await sealed.problems() if p.startswith(f"{id}: it was changed")]
