"""A task starts when its own preambles are pinned: also while a model still writes those of another task."""

from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.planning.renderer import render
from tests.support import invariants
from tests.support.process_group import Gate, doubled, fleet, newest_run
from tests.support.run_facts import Facts, load
from tests.support.script_server import PlayServer
from tests.support.whole_run import PREAMBLE, REST, plan, start, step, worker, writes

PATIENCE = 100
LATE = "Writer of late files"
MADE = plan(step("a"), step("b", "a"), step("late", worker_role=LATE))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = start(tmp_path)
    (project / "plan.md").write_text(render(MADE), encoding="utf-8")
    return project


def serving(gate: Gate) -> PlayServer:
    """A model that answers the first task's worker, and the preamble of the late task, when the gate opens."""
    held = {"delay_seconds": 1.0}
    parts = [
        {
            "role": "agentinator",
            "when": {"brief_has": LATE},
            "turns": [{"text": PREAMBLE, **held, "repeat": "forever"}],
        },
        worker("a", {**writes("a.txt", "a\n"), **held}, "a.txt is written."),
        *(
            worker(id, writes(f"{id}.txt", f"{id}\n"), f"{id}.txt is written.")
            for id in ("b", "late")
        ),
    ]
    return PlayServer({"parts": [*parts, *REST]}, sleep=gate.sleep)


def times_of_late_preamble_and_first_attempts(facts: Facts) -> tuple[int, dict[str, int]]:
    """Return the event numbers of the late preamble and of each task's first attempt."""
    kind = EventKind.PREAMBLE_MADE
    made = [e.seq for e in facts.events if e.kind is kind and e.data["role"] == LATE]
    assert len(made) == 1
    begun = (e for e in facts.events if e.kind is EventKind.ATTEMPT_STARTED)
    return made[0], {e.task: e.seq for e in begun if e.attempt == 1}


def test_a_task_starts_before_the_preamble_of_another_one_is_made_and_the_run_replays(
    tmp_path: Path, project: Path
):
    gate, recording = Gate(), str(tmp_path / "recording.jsonl")
    with serving(gate) as server, fleet(tmp_path, server.url) as processes:
        run = processes.start(project, "execute", "plan.md", "--yes", "--record", recording)
        gate.wait_for(2)  # the late preamble and the work on `a`, both without an answer
        gate.open()
        assert run.wait(PATIENCE) == 0, processes.output_of(run)
        again = processes.start(project, "replay", recording)
        assert again.wait(PATIENCE) == 0, processes.output_of(again)
        facts = load(project, str(newest_run(project, processes.env)["run"]))

    assert set(facts.statuses.values()) == {"completed"}
    assert invariants.broken(facts) == []
    made, begun = times_of_late_preamble_and_first_attempts(facts)
    assert begun["a"] < made < begun["late"]


def test_another_process_makes_the_preambles_that_a_killed_coordinator_leaves(
    tmp_path: Path, project: Path
):
    gate = Gate()
    with serving(gate) as server, fleet(tmp_path, server.url) as processes:
        coordinator = processes.start(project, "execute", "plan.md", "--yes", "--workers", "1")
        gate.wait_for(2)
        second = processes.start(project, "worker", "--concurrency", "1")
        coordinator.kill()
        gate.wait_for(2)  # asked again by the process that took over
        gate.open()
        assert second.wait(PATIENCE) == 0, processes.output_of(second)
        facts = load(project, str(newest_run(project, processes.env)["run"]))

    assert set(facts.statuses.values()) == {"completed"}
    assert doubled(facts.events) == []
    assert invariants.broken(facts) == []
    made, begun = times_of_late_preamble_and_first_attempts(facts)
    assert begun["a"] < made < begun["late"]


def test_a_paused_run_is_resumed_with_the_preambles_that_it_has(tmp_path: Path, project: Path):
    gate = Gate()
    with serving(gate) as server, fleet(tmp_path, server.url) as processes:
        first = processes.start(project, "execute", "plan.md", "--yes")
        gate.wait_for(2)
        pinned = newest_run(project, processes.env)["run"]
        paused = processes.start(project, "pause", str(pinned))
        assert paused.wait(PATIENCE) == 0, processes.output_of(paused)
        assert first.wait(PATIENCE) != 0
        again = processes.start(project, "resume", str(pinned))
        gate.wait_for(2)
        gate.open()
        assert again.wait(PATIENCE) == 0, processes.output_of(again)
        facts = load(project, str(pinned))

    assert set(facts.statuses.values()) == {"completed"}
    assert invariants.broken(facts) == []
    roles = [e.data["role"] for e in facts.events if e.kind is EventKind.PREAMBLE_MADE]
    assert len(roles) == len(set(roles)), "no preamble is reported twice"
