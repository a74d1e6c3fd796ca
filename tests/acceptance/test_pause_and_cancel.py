"""A run that stops early keeps every phase and holds no lease; it resumes at its state, or is cancelled for good."""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.run import RunBudget
from mimir.errors import UsageError
from mimir.llm.scripted.scripted_model import ScriptedModel
from tests.support import invariants
from tests.support.run_facts import Facts
from tests.support.whole_run import (
    Journey,
    Part,
    calls,
    look,
    opened,
    plan,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

TASKS = plan(step("a"), step("b", "a"), step("c"))
SEES = {"calls": [calls("run", command="cat a.txt b.txt 2>&1; true")]}
PARTS: list[Part] = [
    worker("a", writes("a.txt", "a\n"), SEES, "Done."),
    worker("b", SEES, writes("b.txt", "b\n"), "Done."),
    wrote("c"),
]


def held(facts: Facts) -> list[str]:
    return [id for id, row in facts.tasks.items() if row.get("lockedBy")]


async def paused(project: Path, budget: int) -> Journey:
    return await travel(project, TASKS, PARTS, limits=RunBudget(max_calls=budget))


@pytest.mark.parametrize("budget", [2, 5, 9, 12])
async def test_run_resumes_after_the_end_of_its_budget_without_repeated_calls(
    budget: int, tmp_path: Path
):
    project = start(tmp_path)

    first = await paused(project, budget)

    assert (first.ending.outcome, first.ending.exit_code) == ("paused", 75)
    assert "failed" not in first.statuses.values()
    assert held(first.facts) == []
    assert first.status["reason"] == "budget"
    async with opened(project, PARTS) as mimir:
        run = await mimir.find_run(None, resumable=True)
        ending = await mimir.drive(
            run, workers=2, apply="never", limits=RunBudget(max_calls=100), resumed=True
        )
        second = await look(mimir, project, ending)
    assert (second.ending.outcome, second.ending.run) == ("completed", first.ending.run)
    asked = Counter(
        (e.task, e.attempt, e.data["role"], e.data["seq"])
        for e in second.facts.events_of_kind(EventKind.MODEL_CALLED)
        if e.task
    )
    assert set(asked.values()) == {1}
    assert all(len(second.facts.attempts(task)) == 1 for task in "abc")
    assert second.facts.files.keys() == {"README.md", "a.txt", "b.txt", "c.txt"}
    assert invariants.broken(second.facts) == []


async def test_every_answer_that_was_paid_for_is_kept_when_a_run_pauses(tmp_path: Path):
    """Also one that nothing with an effect has followed yet: it waits for the next write, which is refused."""
    reads = {"calls": [calls("read_file", path="README.md")]}
    parts = [worker("a", reads, reads, reads, writes("a.txt", "a\n"), "Done.")]
    limits = RunBudget(max_calls=4)

    journey = await travel(start(tmp_path), plan(step("a")), parts, limits=limits, workers=1)

    assert journey.ending.outcome == "paused"
    told = journey.facts.events_of_kind(EventKind.MODEL_CALLED)
    assert len(told) == 4
    assert told[-1].data["role"] == "worker"


async def test_a_run_whose_time_is_over_pauses(tmp_path: Path):
    journey = await travel(start(tmp_path), TASKS, PARTS, limits=RunBudget(seconds=0.001))

    assert (journey.ending.outcome, journey.ending.exit_code) == ("paused", 75)
    assert journey.status["reason"] == "time_limit"
    assert held(journey.facts) == []


async def test_a_cancelled_run_ends_every_open_task_and_stays_ended(tmp_path: Path):
    project = start(tmp_path)
    before = await paused(project, 9)

    async with opened(project, PARTS) as mimir:
        run = before.ending.run
        await mimir.cancel(run)
        after = await look(mimir, project, before.ending)
        again = await mimir.drive(run, workers=1, apply="never", limits=RunBudget(), resumed=True)
        with pytest.raises(UsageError, match="has ended"):
            await mimir.cancel(run)

    assert (again.outcome, again.exit_code) == ("cancelled", 1)
    done = {id for id, status in before.statuses.items() if status == "completed"}
    assert after.statuses == {
        id: "completed" if id in done else "cancelled" for id in before.statuses
    }
    assert after.status["outcome"] == "cancelled"
    assert "cancelled" in after.report
    assert held(after.facts) == []
    assert invariants.broken(after.facts) == []


async def test_failed_agentinator_and_reporter_do_not_stop_the_run(tmp_path: Path):
    """No preamble: the template is used. No prose: the report is made without."""
    silent: list[Part] = [
        {"role": "agentinator", "turns": [{"fault": "bad_request"}]},
        {"role": "*_reporter", "turns": [{"fault": "unauthorized"}]},
        *PARTS,
    ]

    journey = await travel(start(tmp_path), TASKS, silent, llm__tries=1)

    assert (journey.ending.outcome, journey.ending.exit_code) == ("completed", 0)
    assert "(model)" not in journey.report
    assert not list((journey.facts.project / "generated-agents").glob("*.md"))
    assert invariants.broken(journey.facts) == []


class Meanwhile:
    """Does something from another process's side while QC judges the first task."""

    def __init__(self, patch: pytest.MonkeyPatch, act: Callable[[str], Awaitable[None]]) -> None:
        ask, done = ScriptedModel.ask, []

        async def asked(model: ScriptedModel, request: object) -> object:
            if model._lane.endswith("/a/1/qc") and not done:
                done.append(model._lane)
                await act(model._lane.split("/")[0])
            return await ask(model, request)  # type: ignore[arg-type]

        patch.setattr(ScriptedModel, "ask", asked)


async def test_a_run_that_is_cancelled_while_it_is_worked_on_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = start(tmp_path)
    async with opened(project, PARTS) as other:
        Meanwhile(monkeypatch, other.cancel)
        journey = await travel(project, TASKS, PARTS, workers=3)

    assert (journey.ending.outcome, journey.ending.exit_code) == ("cancelled", 1)
    assert journey.statuses["a"] == journey.statuses["b"] == "cancelled"
    assert held(journey.facts) == []
    assert invariants.broken(journey.facts) == []
