"""A conflict that the engine left in a workspace is settled by the attempt, or the attempt is rejected."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from tests.support import invariants
from tests.support.whole_run import (
    Curtain,
    Journey,
    Part,
    calls,
    plan,
    start,
    step,
    travel,
    worker,
    writes,
)


@pytest.fixture
def curtain(monkeypatch: pytest.MonkeyPatch) -> Curtain:
    """Holds workers back until others are done."""
    return Curtain(monkeypatch)


def runs(command: str) -> dict[str, object]:
    return {"calls": [calls("run", command=command)]}


async def meet(
    tmp_path: Path,
    curtain: Curtain,
    files: Mapping[str, str],
    commands: tuple[str, str],
    later: Sequence[Part],
) -> Journey:
    """Run two tasks whose first attempts run these commands on one base."""
    first, second = commands
    parts = [
        worker("first", writes("first.txt", "first\n"), runs(first), "Done."),
        worker("second", writes("second.txt", "second\n"), runs(second), "Done.", attempt=1),
        *later,
    ]
    curtain.hold("second", until="first")
    tasks = plan(step("first"), step("second"))
    return await travel(start(tmp_path, files), tasks, parts, workers=2)


def again(*turns: Mapping[str, object], attempt: object = ">=2") -> Part:
    return worker("second", *turns, "Done again.", attempt=attempt)


def print_changes(text: str) -> str:
    return f"printf '# Changes\\n- {text}\\n' > CHANGES.md"


async def test_conflict_markers_of_the_engine_are_never_delivered(tmp_path: Path, curtain: Curtain):
    files = {"CHANGES.md": "# Changes\n"}
    looks = again(writes("second.txt", "second\nagain\n"))

    journey = await meet(
        tmp_path, curtain, files, (print_changes("one"), print_changes("two")), [looks]
    )

    assert journey.ending.exit_code == 1
    assert journey.statuses == {"first": "completed", "second": "failed"}
    assert journey.facts.tasks["second"]["cause"] == "integration"
    assert journey.facts.files["CHANGES.md"] == "# Changes\n- one\n"
    last = journey.facts.events_of_kind(EventKind.TASK_FAILED)[0].data["issues"]
    assert "'CHANGES.md' is not settled" in str(last)
    assert invariants.broken(journey.facts) == []


async def test_a_conflict_returns_to_the_next_attempt_and_can_be_settled_there(
    tmp_path: Path, curtain: Curtain
):
    both = "# Changes\n- one\n- two\n"
    later = [
        again(writes("second.txt", "second\nagain\n"), attempt=2),
        again(
            {"calls": [calls("read_file", path="CHANGES.md")]},
            writes("CHANGES.md", both),
            attempt=3,
        ),
    ]

    journey = await meet(
        tmp_path,
        curtain,
        {"CHANGES.md": "# Changes\n"},
        (print_changes("one"), print_changes("two")),
        later,
    )

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert journey.facts.files["CHANGES.md"] == both
    seen = str(journey.facts.tool_calls("second", 3)[0]["valueJson"])
    assert seen.count("<<<<<<<") == 1
    assert not journey.facts.tasks["second"].get("qcFailuresCount")
    assert invariants.broken(journey.facts) == []


@pytest.mark.parametrize(
    ("files", "commands", "settle", "kept"),
    [
        ({"a": "a\n"}, ("echo b > a", "rm a"), "touch a", {"a": "b\n"}),
        ({"a": "a\n"}, ("rm a", "echo b > a"), "rm a", {"a": None}),
        ({"a": "a\0"}, (r"printf 'b\0' > a", r"printf 'c\0' > a"), r"printf 'd\0' > a", {"a": "d\0"}),
        ({}, ("echo a > a", "mkdir a && echo b > a/b"), "mv a~head a/a", {"a/a": "a\n", "a/b": "b\n"}),
    ],
    ids=["kept", "removed", "binary", "directory"],
)  # fmt: skip
async def test_a_conflict_without_lines_is_decided_by_a_call(
    files: Mapping[str, str],
    commands: tuple[str, str],
    settle: str,
    kept: Mapping[str, str | None],
    tmp_path: Path,
    curtain: Curtain,
):
    later = [again(runs("true"), attempt=2), again(runs(settle), attempt=3)]

    journey = await meet(tmp_path, curtain, {"README.md": "", **files}, commands, later)

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert {path: journey.facts.files.get(path) for path in kept} == kept
    assert [a.get("endCause") for a in journey.facts.attempts("second")] == [
        "integration",
        "integration",
        None,
    ]
