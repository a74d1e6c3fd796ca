"""The breaker, from the plan's estimate to the verdict: exactly so many calls, and then the closing answer is asked for and judged."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mimir.agents import tool_log
from mimir.domain.event import EventKind
from tests.support import invariants
from tests.support.whole_run import (
    FAIL,
    Journey,
    Turn,
    calls,
    check,
    plan,
    qc,
    start,
    step,
    travel,
    worker,
    writes,
)

APPEND = calls("run", command="echo a >> a.txt")
CLOSING: Mapping[str, object] = {"closing": {"text": "I was stopped; what is there is there."}}


async def go(
    tmp_path: Path, turns: Sequence[Turn], *more: Mapping[str, object], **fields: object
) -> Journey:
    said = worker("a", *turns, **CLOSING)
    task = step("a", **{"checks": (check("grep", "-q", "^a$", "a.txt"),), **fields})
    journey = await travel(start(tmp_path), plan(task), [said, *more])
    assert invariants.broken(journey.facts) == []
    return journey


def tripped(journey: Journey) -> list[object]:
    return [event.data["kind"] for event in journey.facts.events_of_kind(EventKind.BREAKER_TRIPPED)]


def asked(journey: Journey, *, role: str = "worker") -> str:
    """Return all messages to the model of a transcript."""
    return "\n".join(str(c["deltaJson"]) for c in journey.facts.calls("a", role=role))


@pytest.mark.parametrize(
    "turns",
    [
        [{"calls": [{**APPEND, "times": 10}]}],
        [{"calls": [APPEND], "repeat": 10}],
        [{"calls": [{**APPEND, "times": 4}], "repeat": 3}],
    ],
    ids=["ten in one message", "one in ten messages", "four in three messages"],
)
async def test_estimate_of_four_calls_allows_six(turns: list[Turn], tmp_path: Path):
    journey = await go(tmp_path, turns, estimated_tool_calls=4)

    assert journey.facts.files["a.txt"] == "a\n" * 6
    assert len(journey.facts.tool_calls("a")) == 6
    assert len(journey.facts.events_of_kind(EventKind.TOOL_CALLED)) == 6
    assert tripped(journey) == ["tool_calls"]
    assert journey.facts.work("a").answer == CLOSING["closing"]["text"]
    assert "6 of 6 tool calls used" in journey.facts.work("a").tripped
    # A trip is no failure: the answer was judged, and the deliverable is right.
    assert journey.statuses == {"a": "completed"}
    assert journey.ending.exit_code == 0
    [told] = journey.status["tasks"]
    assert (told["tool_calls"], told["limit"]) == (6, 6)


@pytest.mark.parametrize(("estimate", "limit"), [(None, 50), (1, 2), (3, 5)])
async def test_the_limit_follows_from_the_estimate(
    estimate: int | None, limit: int, tmp_path: Path
):
    turn = {"calls": [calls("read_file", times=60, path="README.md"), APPEND]}
    first = writes("a.txt", "a\n")

    journey = await go(tmp_path, [first, turn], estimated_tool_calls=estimate)

    assert len(journey.facts.tool_calls("a")) == limit
    assert journey.facts.files["a.txt"] == "a\n"
    assert tripped(journey) == ["tool_calls"]
    assert journey.statuses == {"a": "completed"}


@pytest.mark.parametrize(
    "command", ["cat a.txt", "date +%H:%M:%S; cat a.txt"], ids=["plain", "with the time in it"]
)
async def test_the_same_command_on_the_same_tree_trips_the_third_time(command: str, tmp_path: Path):
    again = {"calls": [calls("run", command=command)], "repeat": "forever"}

    journey = await go(tmp_path, [writes("a.txt", "a\n"), again], estimated_tool_calls=20)

    runs = [row for row in journey.facts.tool_calls("a") if row["tool"] == "run"]
    assert len(runs) == 3
    assert tripped(journey) == ["repetition"]
    assert asked(journey).count(tool_log.REPEATED.strip()) == 1  # on the second result
    assert journey.facts.work("a").answer == CLOSING["closing"]["text"]
    assert journey.statuses == {"a": "completed"}


async def test_a_trip_without_a_deliverable_is_judged_like_any_other(tmp_path: Path):
    reads = {"calls": [calls("read_file", path="README.md")], "repeat": "forever"}

    journey = await go(tmp_path, [reads], max_retries=0)

    assert tripped(journey) == ["repetition"]
    assert journey.statuses == {"a": "failed"}
    assert journey.failure("a")["cause"] == "check_failed"
    assert "I was stopped" in asked(journey, role="qc")


async def test_missing_closing_answer_ends_the_attempt(tmp_path: Path):
    said = worker("a", {"calls": [{**APPEND, "times": 10}]}, closing={"text": " "})

    journey = await travel(start(tmp_path), plan(step("a")), [said])

    assert journey.statuses == {"a": "failed"}
    assert journey.failure("a")["cause"] == "invalid_answer"
    models = [c for c in journey.facts.calls("a") if c["kind"] == "model"]
    assert len(models) == 3  # work, closing answer, the re-ask
    assert invariants.broken(journey.facts) == []


async def test_brief_of_a_retry_names_the_limit_that_tripped(tmp_path: Path):
    more = worker(
        "a",
        writes("a.txt", "a\nmore\n"),
        "It is whole now.",
        attempt=2,
        when={"brief_has": "6 of 6 tool calls used"},
    )
    said = worker("a", {"calls": [{**APPEND, "times": 10}]}, attempt=1, **CLOSING)

    journey = await travel(
        start(tmp_path),
        plan(step("a", max_retries=1)),
        [said, more, qc("a", FAIL, attempt=1)],
    )

    assert journey.statuses == {"a": "completed"}
    assert journey.facts.files["a.txt"] == "a\nmore\n"


async def test_qc_has_fifty_tool_calls(tmp_path: Path):
    looks = {"calls": [calls("read_file", times=70, path="a.txt")]}
    verdict = {"verdict": {"auto": "pass"}}
    said = {**qc("a", looks), "closing": verdict}

    journey = await travel(
        start(tmp_path), plan(step("a")), [worker("a", writes("a.txt", "a\n"), "Done."), said]
    )

    assert len(journey.facts.tool_calls("a", role="qc")) == 50
    assert journey.statuses == {"a": "completed"}


@pytest.mark.parametrize(
    ("kind", "limits", "flags"),
    [
        ("wall_clock", {"time_limit_minutes": 0.0001}, {}),
        ("tokens", {}, {"run__attempt_tokens": 1}),
    ],
)
async def test_time_and_tokens_end_the_use_of_tools_too(
    kind: str, limits: dict[str, object], flags: dict[str, object], tmp_path: Path
):
    task = step("a", estimated_tool_calls=20, **limits)
    turns = [{"calls": [APPEND], "repeat": "forever"}]

    journey = await travel(start(tmp_path), plan(task), [worker("a", *turns, **CLOSING)], **flags)

    assert tripped(journey) == [kind]
    assert len(journey.facts.tool_calls("a")) == 1
    assert journey.facts.work("a").answer == CLOSING["closing"]["text"]
