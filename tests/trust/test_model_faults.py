"""Every fault of an endpoint, striking planner, worker and judge in the first, a middle and the last call of a real run.

A cell ends in a true terminal state or pauses; a paused run continues after the repair; no partial answer counts as an answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from mimir.domain.task_states import RUN_ENDED
from mimir.errors import ModelError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.endpoint import OpenAIEndpoint
from mimir.llm.openai.payload import clean
from mimir.llm.scripted.faults import FAULTS, ODD_TEXT
from mimir.planning import parser
from tests.support import invariants
from tests.support.clock import FrozenClock
from tests.support.fault_cells import (
    ANSWER,
    FATAL,
    KEY,
    ONE,
    PASSING,
    PLACES,
    ROLES,
    WAITS,
    Cell,
    Outcome,
    Run,
)
from tests.support.model_requests import question
from tests.support.script_server import PlayServer
from tests.support.trust_sizes import Cases, sample, size
from tests.support.virtual_waiting import warp_waits

AT_ONCE = 3
WAIT_SLACK = 1.1
"""A wait that is asked for is kept, and at most a tenth longer."""
MEMORY_BYTES = 50_000_000

ONCE = [
    Cell(fault=fault, role=role, place=place)
    for fault in FAULTS
    for role in ROLES
    for place in range(len(PLACES))
]
LASTING = [
    Cell(fault=fault, role=role, place=number % 3, lasts=True)
    for number, fault in enumerate(PASSING)
    for role in ROLES
]


NAMED = {
    "rate_limited", "rate_limited_date", "rate_limited_absurd", "rate_limited_bare", "server_error", "bad_gateway", "unavailable",
    "overloaded", "unauthorized", "payment_required", "unknown_model", "context_length", "refused", "reset", "stall_first_byte",
    "stall_middle", "endless", "truncated_json", "invalid_json", "unknown_tool", "wrong_arguments", "hundred_calls", "empty", "huge",
    "odd_characters", "wrong_content_type", "finish_length", "content_filter", "usage_missing",
}  # fmt: skip
"""Tried at every place outside of the largest size too; the others at one place for each role."""


def chosen(cells: Sequence[Cell], small: int) -> list[Cell]:
    """Return the cells of the size in force."""
    if size() == "full":
        return list(cells)
    kept = [c for n, c in enumerate(cells) if c.fault in NAMED or n // len(ROLES) % 3 == c.place]
    return sample(kept, small)


async def all_of(
    cells: Sequence[Cell], cases: Cases, tmp_path: Path, judge: Callable[[Run], Awaitable[None]]
) -> None:
    """Try cells, a few at once, each in a project of its own."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, cell: Cell) -> None:
        async with free:
            with cases.case(cell):
                await judge(Run(cell, tmp_path / str(number)))

    async with asyncio.TaskGroup() as group:
        for number, cell in enumerate(cells):
            group.create_task(one(number, cell))


async def struck(run: Run) -> None:
    """Inject a fault once: a provider's fault passes, a fault that needs the user stops at once, any other ends truly."""
    fault = run.cell.fault
    with PlayServer(run.play()) as server:
        async with run.opened(server) as mimir:
            outcome = await run.go(mimir, resumed=False)
            asked = asked_where_it_struck(run, server)
            if fault in FATAL:
                assert (outcome.exit_code, asked) == (78, 1), (outcome, asked)
                assert FATAL[fault] in outcome.message, outcome.message
                assert "mimir resume" in outcome.message
                await truly_paused(run, "configuration")
                outcome = await run.go(mimir, resumed=True)
            if fault in PASSING or fault in FATAL or fault == "unsupported_parameter":
                assert outcome.exit_code == 0, outcome
            if fault in PASSING:
                assert asked == 2, asked
                wait = WAITS.get(fault)
                slept = sum(run.warp.slept)
                assert wait is None or wait - 1 <= slept <= wait * WAIT_SLACK, run.warp.slept
        await ended_truly(run, outcome)


async def lasted(run: Run) -> None:
    """Let a fault last: the run pauses after its tries, fails nothing, and continues after the fault."""
    run.broken.touch()
    with PlayServer(run.play()) as server:
        async with run.opened(server) as mimir:
            outcome = await run.go(mimir, resumed=False)
            assert outcome.exit_code == 75, outcome
            assert "mimir resume" in outcome.message, outcome.message
            # An answer over the limit of its size is asked for once more only.
            tries = 2 if run.cell.fault in ("endless", "endless_pings", "huge") else 3
            assert asked_where_it_struck(run, server) == tries
            await truly_paused(run, "provider")
        run.broken.unlink()
        async with run.opened(server) as mimir:
            outcome = await run.go(mimir, resumed=True)
            assert outcome.exit_code == 0, outcome
        await ended_truly(run, outcome)


def asked_where_it_struck(run: Run, server: PlayServer) -> int:
    """Count the requests of the conversation's turn in which the fault was staged."""
    role, turn = run.cell.role, run.cell.place
    return sum(seen.turn == turn for seen in server.of(role))


async def truly_paused(run: Run, reason: str) -> None:
    row = await run.row()
    assert (row["status"], row["pauseReason"]) == ("paused", reason), dict(row)


async def ended_truly(run: Run, outcome: Outcome) -> None:
    """The run is in a terminal state, and each completed task is whole."""
    row = await run.row()
    assert row["status"] in RUN_ENDED, (row["status"], outcome)
    if run.cell.role == "pm":
        plans = [p.read_text() for p in (run.project / "chains").rglob("chain-output.md")]
        done = row["status"] == "completed"
        assert not done or [parser.parse_plan(text).plan.tasks for text in plans] == [ONE.tasks]
        return
    facts = await run.facts()
    assert invariants.broken(facts) == []
    if facts.statuses["a"] == "completed":
        answer = facts.work("a", len(facts.attempts("a"))).answer
        assert answer.removeprefix(clean(ODD_TEXT)) == ANSWER, f"a partial answer: {answer!r}"


@pytest.mark.parametrize("part", range(4))
async def test_single_model_fault_never_falsifies_a_run(
    part: int, cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    warp_waits(monkeypatch)
    await all_of(chosen(ONCE, 12)[part::4], cases, tmp_path, struck)


@pytest.mark.parametrize("part", range(2))
async def test_lasting_model_fault_pauses_the_run_until_it_ends(
    part: int, cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    warp_waits(monkeypatch)
    await all_of(sample(LASTING, 2)[part::2], cases, tmp_path, lasted)


HUGE = ("huge", "endless", "endless_pings")


@pytest.mark.parametrize("fault", HUGE)
@pytest.mark.parametrize("streams", [True, False])
async def test_memory_of_an_answer_is_bounded_by_the_largest_accepted_one(
    fault: str, streams: bool, cases: Cases
):
    play = f"default: [{{fault: {fault}}}]"
    with cases.case(fault):
        before = memory_bytes()
        with PlayServer(play, streams=streams) as server:
            config = EndpointConfig(base_url=server.url, api_key=KEY, model="m")
            endpoint = OpenAIEndpoint(config, FrozenClock())
            for _ in range(2):
                with pytest.raises(ModelError):
                    await endpoint.for_lane("r/t/1/worker").ask(question())
            await endpoint.aclose()
        assert peak_bytes() - before < MEMORY_BYTES


def memory_bytes() -> int:
    """Return the memory of this process; its peak is measured from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    said = Path("/proc/self/status").read_text()
    return int(said.partition("VmHWM:")[2].split()[0]) * 1024
