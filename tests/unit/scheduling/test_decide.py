import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.plan import Plan, Task
from mimir.domain.scheduling_command import (
    AwaitInput,
    BlockTask,
    Command,
    FinishRun,
    ReleaseTask,
)
from mimir.domain.task_states import TERMINAL, TaskStatus
from mimir.scheduling.decide import RunSnapshot, decide
from mimir.scheduling.priority import weights


def task(id: str, *needs: str, minutes: float = 1, files: Sequence[str] = ()) -> Task:
    return Task(
        id=id,
        title=id,
        prompt="p",
        worker_role="w",
        dependencies=needs,
        estimated_minutes=minutes,
        files=tuple(files),
    )


def snapshot(
    *tasks: Task, status: dict[str, TaskStatus] | None = None, released: Sequence[str] = ()
) -> RunSnapshot:
    plan = Plan(title="t", tasks=tasks)
    return RunSnapshot.from_rows(plan, status or {}, released, weights(plan))


def released(commands: Sequence[Command]) -> list[str]:
    return [c.task for c in commands if isinstance(c, ReleaseTask)]


def carry_out(at: RunSnapshot) -> list[Command]:
    """Carry out the decisions, as the coordinator does, until nothing is left to do at once."""
    done: list[Command] = []
    while commands := [c for c in decide(at) if not isinstance(c, FinishRun)]:
        for command in commands:
            if isinstance(command, ReleaseTask):
                at.note_released(command.task)
            elif isinstance(command, BlockTask):
                at.apply(command.task, TaskStatus.BLOCKED)
        done += commands
    return done


def test_ready_tasks_are_released_longest_remaining_path_first():
    at = snapshot(task("short", minutes=5), task("head"), task("tail", "head", minutes=9))
    assert released(decide(at)) == ["head", "short"]


def test_task_is_released_when_its_own_dependencies_are_done_and_no_barrier_holds_it():
    at = snapshot(task("a"), task("b"), task("c", "a"))
    carry_out(at)
    at.apply("a", TaskStatus.COMPLETED)
    assert released(decide(at)) == ["c"]
    assert at.status["b"] is TaskStatus.PENDING


def test_repeated_decision_is_equal():
    at = snapshot(task("a"), task("b", "a"))
    assert decide(at) == decide(at)


def test_descendants_of_a_failure_are_blocked_and_other_tasks_continue():
    at = snapshot(task("bad"), task("x", "bad"), task("y", "x"), task("good"), task("z", "good"))
    carry_out(at)
    at.apply("bad", TaskStatus.FAILED)
    at.apply("good", TaskStatus.COMPLETED)
    commands = carry_out(at)
    assert [c for c in commands if isinstance(c, BlockTask)] == [
        BlockTask(task="x", because="bad"),
        BlockTask(task="y", because="x"),
    ]
    assert released(commands) == ["z"]


@pytest.mark.parametrize("end", [TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.CANCELLED])
def test_every_end_but_completed_blocks(end: TaskStatus):
    at = snapshot(task("a"), task("b", "a"), status={"a": end})
    assert decide(at) == [BlockTask(task="b", because="a")]


def test_run_is_finished_when_every_task_has_ended():
    at = snapshot(task("a"), task("b", "a"))
    carry_out(at)
    assert not any(isinstance(c, FinishRun) for c in decide(at))
    at.apply("a", TaskStatus.COMPLETED)
    carry_out(at)
    at.apply("b", TaskStatus.FAILED)
    assert decide(at) == [FinishRun()]


def test_declared_overlaps_run_one_after_the_other_and_undeclared_ones_at_once():
    at = snapshot(
        task("big", files=["src/**"], minutes=9),
        task("small", files=["src/a.py"]),
        task("docs", files=["docs/**"]),
        task("unknown"),
    )
    assert released(carry_out(at)) == ["big", "docs", "unknown"]
    at.apply("big", TaskStatus.COMPLETED)
    assert released(carry_out(at)) == ["small"]


def test_retry_keeps_its_claim_on_its_files():
    at = snapshot(task("a", files=["x"]), task("b", files=["x"]))
    carry_out(at)
    at.apply("a", TaskStatus.WORKER_EXECUTING)
    at.apply("a", TaskStatus.PREPARING_RETRY)
    assert decide(at) == []


@given(st.integers(0, 10**9))
def test_incremental_snapshot_equals_one_that_is_built_anew(seed: int):
    chance = random.Random(seed)
    tasks = [
        task(
            f"t{n}",
            *{f"t{chance.randrange(n)}" for _ in range(chance.randrange(3)) if n},
            minutes=chance.randint(1, 9),
            files=[f"f{chance.randrange(3)}"] if chance.random() < 0.5 else [],
        )
        for n in range(chance.randint(1, 12))
    ]
    at = snapshot(*tasks)
    carry_out(at)
    while at.open:
        one = chance.choice(sorted(at.released))
        at.apply(
            one, chance.choice([TaskStatus.COMPLETED, TaskStatus.COMPLETED, TaskStatus.FAILED])
        )
        anew = snapshot(*tasks, status=dict(at.status), released=sorted(at.released))
        assert decide(anew) == decide(at)
        carry_out(at)
    assert all(status in TERMINAL for status in at.status.values())


def test_decisions_on_ten_thousand_tasks_cost_only_the_changes():
    tasks = [task(f"t{n}", *([f"t{n - 100}"] if n >= 100 else [])) for n in range(10_000)]
    at = snapshot(*tasks)
    carry_out(at)
    started = time.process_time()
    decided = 0
    while at.open:
        at.apply(min(at.released), TaskStatus.COMPLETED)
        decided += len(carry_out(at))
    assert decided == 9_900
    # 10,000 decisions at 1 ms would be 10 s; a decision that looked at the whole plan would take minutes.
    assert time.process_time() - started < 30


def test_decision_reads_one_of_the_tasks_that_write_the_same_file():
    at = snapshot(*(task(f"t{n:04}", files=["one.py"], minutes=n) for n in range(1, 500)))
    order: list[str] = []
    while at.open:
        assert len(at.candidates()) <= 1
        (chosen,) = released(carry_out(at))
        assert at.candidates() == [] or decide(at) == []
        at.apply(chosen, TaskStatus.COMPLETED)
        order.append(chosen)
    assert order == [f"t{n:04}" for n in range(499, 0, -1)]


def test_the_user_is_waited_for_only_if_no_task_can_continue():
    at = snapshot(task("a"), task("b", "a"), task("c"))
    carry_out(at)
    at.note_waiting("a", waits=True)
    assert decide(at) == []  # c is under way

    at.apply("c", TaskStatus.COMPLETED)
    assert decide(at) == [AwaitInput()]

    at.note_waiting("a", waits=False)
    assert decide(at) == []
    at.note_waiting("a", waits=True)
    at.apply("a", TaskStatus.CANCELLED)
    assert not at.needs_input
