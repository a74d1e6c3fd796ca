"""Tasks that change the same lines, one file, or the subject of another check. The final gate decides last."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause
from mimir.scheduling.completion.integration import MergeConflict, RunBranch, TaskIntegration
from tests.support import invariants
from tests.support.whole_run import (
    FAIL,
    LINES,
    PASS,
    SHARED,
    Curtain,
    Journey,
    Part,
    calls,
    check,
    edit,
    holds,
    plan,
    qc,
    sharer,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)


@pytest.fixture
def curtain(monkeypatch: pytest.MonkeyPatch) -> Curtain:
    """Holds workers back until others are done."""
    return Curtain(monkeypatch)


async def go(tmp_path: Path, tasks: Sequence[Task], parts: Sequence[Part]) -> Journey:
    return await travel(start(tmp_path, SHARED), plan(*tasks), parts, workers=4)


async def test_second_change_of_the_same_lines_is_retried_on_both_versions(
    tmp_path: Path, curtain: Curtain
):
    both = LINES.replace("line 3\n", "line 3 of first\nline 3 of second\n")
    again = worker(
        "second",
        {"calls": [calls("read_file", path="shared.txt")]},
        writes("shared.txt", both),
        "Both lines are there.",
        attempt=2,
        when={"brief_has": ["Attempt 2 of 2", "Another task changed the same lines"]},
    )
    parts = [
        worker("first", edit("first", 3), "Done."),
        worker("second", edit("second", 3), "Done.", attempt=1),
        again,
    ]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, [sharer("first"), sharer("second")], parts)

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert journey.ending.exit_code == 0
    assert journey.facts.files["shared.txt"] == both
    [retried] = journey.facts.events_of_kind(EventKind.TASK_RETRIED)
    assert (retried.task, retried.data["reason"]) == ("second", "integration")
    row = journey.facts.tasks["second"]
    assert (row["retryReason"], row["integrationRetries"]) == ("integration", 1)
    assert not row.get("qcFailuresCount")
    [read, _] = journey.facts.tool_calls("second", 2)
    for part in ("<<<<<<<", "line 3 of first", "=======", "line 3 of second", ">>>>>>>"):
        assert part in str(read["valueJson"])
    assert invariants.broken(journey.facts) == []


async def test_a_file_changed_on_both_sides_is_judged_again_as_it_was_merged(
    tmp_path: Path, curtain: Curtain
):
    parts = [
        worker("first", edit("first", 1), "Done."),
        worker("second", edit("second", 9), "Done."),
    ]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, [sharer("first"), sharer("second")], parts)

    assert journey.ending.exit_code == 0
    assert journey.facts.files["shared.txt"].count(" of ") == 2
    [merged] = [lane for lane in journey.facts.lanes("second") if "merged" in lane]
    assert str(journey.facts.row["headTree"]).startswith(merged.removeprefix("qc.merged-"))
    verdicts = [v for v in journey.facts.nodes["Verdict"] if v["taskId"] == "second"]
    assert [v["passed"] for v in verdicts] == [True, True]
    asked = str(journey.facts.calls("second", role=merged)[0]["deltaJson"])
    assert "of first" in asked
    assert "of second" in asked
    assert invariants.broken(journey.facts) == []


async def test_merge_rejected_by_qc_is_retried_from_the_merged_tree(
    tmp_path: Path, curtain: Curtain
):
    rejected = {"auto": "fail", "issues": ["the lines say the opposite"]}
    parts = [
        worker("first", edit("first", 1), "Done."),
        worker("second", edit("second", 9), "Done.", attempt=1),
        worker(
            "second",
            edit("second", 10),
            "It fits now.",
            attempt=2,
            when={"brief_has": "the lines say the opposite"},
        ),
        qc("second", {"verdict": rejected, "repeat": "forever"}, lane="qc.merged-*"),
    ]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, [sharer("first"), sharer("second")], parts)

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert journey.facts.tasks["second"]["acceptedAttempt"] == 2
    assert not journey.facts.tasks["second"].get("qcFailuresCount")
    assert journey.facts.files["shared.txt"].count(" of ") == 3
    assert invariants.broken(journey.facts) == []


@pytest.mark.parametrize(
    ("says", "cause"),
    [
        ("I have no opinion.", "qc_unavailable"),
        ({"verdict": {"verdict": "PASS", "score": 90, "criteria": []}}, "unverifiable"),
    ],
    ids=["no verdict", "nothing verified"],
)
async def test_merge_without_a_verdict_fails_the_task(
    says: object, cause: str, tmp_path: Path, curtain: Curtain
):
    says = {"text": says} if isinstance(says, str) else says
    parts = [
        worker("first", edit("first", 1), "Done."),
        worker("second", edit("second", 9), "Done."),
        qc("second", PASS, lane="qc"),
        qc("second", {**says, "repeat": "forever"}, lane="qc.merged-*"),
    ]
    curtain.hold("second", until="first")

    journey = await go(
        tmp_path, [sharer("first"), sharer("second", checks=(), max_retries=2)], parts
    )

    assert journey.statuses == {"first": "completed", "second": "failed"}
    assert journey.failure("second")["cause"] == cause
    assert len(journey.facts.attempts("second")) == 1
    assert f"mimir/{journey.ending.run}-second-1" in journey.facts.branches
    assert invariants.broken(journey.facts) == []


ONE_ITEM = check("sh", "-c", "test $(ls *.item | wc -l) = 1")


def items() -> tuple[list[Task], list[Part]]:
    """Two tasks that touch no common file, of which the second's file breaks the first one's check."""
    first = step("first", files=("*.item",), checks=(ONE_ITEM,))
    second = step("second", checks=(check("sh", "-c", "test -e b.item || test -e b.other"),))
    done = worker("first", writes("a.item", "a\n"), "One item.")
    return [first, second], [done, worker("second", writes("b.item", "b\n"), "Done.", attempt=1)]


async def test_a_clean_merge_that_turns_an_earlier_check_red_is_caught(
    tmp_path: Path, curtain: Curtain
):
    tasks, parts = items()
    mended = worker(
        "second",
        {"calls": [calls("delete_file", path="b.item")]},
        writes("b.other", "b\n"),
        "It is no item any more.",
        attempt=2,
        when={"brief_has": "check 'unit' of first fails"},
    )
    curtain.hold("second", until="first")

    journey = await go(tmp_path, tasks, [*parts, mended])

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert journey.ending.exit_code == 0
    assert journey.facts.files.keys() == {"README.md", "shared.txt", "a.item", "b.other"}
    [retried] = journey.facts.events_of_kind(EventKind.TASK_RETRIED)
    assert (retried.task, retried.data["reason"]) == ("second", "integration")
    assert not journey.facts.tasks["second"].get("qcFailuresCount")
    assert invariants.broken(journey.facts) == []


async def test_the_third_failed_integration_ends_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """No plan moves the run branch under every attempt for sure, so here the merge is reported as failed."""

    async def red(_: TaskIntegration) -> MergeConflict | None:
        return MergeConflict(cause=Cause.INTEGRATION, issues=("it does not fit",))

    monkeypatch.setattr(TaskIntegration, "integrate", red)
    parts = [
        worker("a", writes("a.txt", f"a\n{n}\n"), f"Try {n}.", attempt=n, when={"brief_has": told})
        for n, told in ((1, "Attempt 1 of 1"), (2, "Attempt 2 of 2"), (3, "Attempt 3 of 3"))
    ]

    journey = await go(tmp_path, [step("a"), step("b", "a")], parts)

    assert journey.statuses == {"a": "failed", "b": "blocked"}
    assert journey.failure("a")["cause"] == "integration"
    assert [a["endCause"] for a in journey.facts.attempts("a")] == ["integration"] * 3
    assert not journey.facts.tasks["a"].get("qcFailuresCount")
    assert f"mimir/{journey.ending.run}-a-3" in journey.facts.branches
    assert invariants.broken(journey.facts) == []


async def test_integration_and_rejection_are_counted_apart(tmp_path: Path, curtain: Curtain):
    """One conflict, then a rejection, then success: with one retry granted."""
    both = LINES.replace("line 3\n", "line 3 of first\nline 3 of second\n")
    parts = [
        worker("first", edit("first", 3), "Done."),
        worker("second", edit("second", 3), "Done.", attempt=1),
        worker("second", writes("shared.txt", both + "bad\n"), "Done.", attempt=2),
        worker("second", writes("shared.txt", both), "Done.", attempt=3),
        qc("second", FAIL, attempt=2),
    ]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, [sharer("first"), sharer("second", max_retries=1)], parts)

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert [a.get("endCause") for a in journey.facts.attempts("second")] == [
        "integration",
        "qc_rejected",
        None,
    ]
    assert journey.facts.tasks["second"]["qcFailuresCount"] == 1
    assert journey.facts.files["shared.txt"] == both
    assert invariants.broken(journey.facts) == []


async def test_final_gate_names_the_merge_that_integration_accepted_wrongly(
    tmp_path: Path, curtain: Curtain, monkeypatch: pytest.MonkeyPatch
):
    async def blind(
        _: TaskIntegration, branch: RunBranch, tree: str
    ) -> tuple[tuple[()], tuple[()]]:
        return (), ()

    monkeypatch.setattr(TaskIntegration, "_prove", blind)
    tasks, parts = items()
    curtain.hold("second", until="first").hold("third", until="second")

    journey = await go(tmp_path, [*tasks, step("third")], [*parts, wrote("third")])

    assert set(journey.statuses.values()) == {"completed"}
    assert (journey.ending.outcome, journey.ending.exit_code) == ("failed", 1)
    assert not journey.facts.events_of_kind(EventKind.GATE_PASSED)
    [gate] = journey.facts.events_of_kind(EventKind.GATE_FAILED)
    assert gate.data["red"] == [{"task": "first", "check": "unit", "merge": "second"}]
    words = "It first failed after the merge of second."
    assert words in journey.ending.message
    assert words in journey.flat_report
    assert journey.status["outcome"] == "failed"
    assert [b.split(": ")[0] for b in invariants.broken(journey.facts)] == ["I2", "I2"]


async def test_final_gate_stops_a_run_with_an_overwritten_run_branch(
    tmp_path: Path, curtain: Curtain
):
    """The second task starts from the first one's result and undoes it: no merge, so only the gate finds it."""
    parts = [
        worker("first", edit("first", 3), "Done."),
        worker("second", writes("shared.txt", "line of second\n"), "Done."),
    ]

    journey = await go(tmp_path, [sharer("first"), sharer("second", "first")], parts)

    assert (journey.ending.outcome, journey.ending.exit_code) == ("failed", 1)
    assert "after the merge of second" in journey.flat_report
    assert journey.ending.applied == ()
    assert invariants.broken(journey.facts) == []


async def test_conflict_markers_name_the_origin_of_their_lines(tmp_path: Path, curtain: Curtain):
    parts = [
        worker("first", edit("first", 3), "Done."),
        worker("second", edit("second", 3), "Done.", attempt=1),
        worker("second", {"calls": [calls("run", command="cat shared.txt")]}, "Hm.", attempt=2),
    ]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, [sharer("first"), sharer("second")], parts)

    [seen] = journey.facts.tool_calls("second", 2)
    lines = json.loads(str(seen["valueJson"]))["text"].splitlines()
    start = lines.index("<<<<<<< head")
    assert lines[start + 1 : start + 5] == [
        "line 3 of first",
        "=======",
        "line 3 of second",
        ">>>>>>> attempt",
    ]


async def test_retry_keeps_the_accepted_version_of_a_binary_file(tmp_path: Path, curtain: Curtain):
    """A retry without further changes must not undo the accepted work of other tasks."""

    def put(text: str) -> dict[str, object]:
        return {"calls": [calls("run", command=f"printf 'a\\0{text}' > both.bin")]}

    both = holds("both.bin", "first"), holds("both.bin", "second")
    parts = [
        worker("first", put("first"), "Done."),
        worker("second", put("second"), "Done.", attempt=1),
        worker("second", writes("second.txt", "more\n"), "It was done before.", attempt=2),
        worker("second", put("first second"), "Both now.", attempt=3),
    ]
    tasks = [step("first", checks=both[:1]), step("second", checks=both[1:], max_retries=1)]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, tasks, parts)

    assert journey.ending.outcome == "completed", journey.ending.message
    assert [a.get("endCause") for a in journey.facts.attempts("second")] == [
        "integration",
        "integration",
        None,
    ]
    assert journey.facts.files["both.bin"] == "a\0first second"


async def test_retry_of_a_rejected_attempt_has_both_versions_of_the_same_lines(
    tmp_path: Path, curtain: Curtain
):
    """QC rejects it before it can be merged, so the conflict is met by the retry's workspace alone."""
    both = LINES.replace("line 3\n", "line 3 of first\nline 3 of second\n")
    parts = [
        worker("first", edit("first", 3), "Done."),
        worker("second", edit("second", 3), "Done.", attempt=1),
        worker(
            "second",
            writes("shared.txt", both),
            "Both lines are there.",
            attempt=2,
            when={"brief_has": ["'shared.txt'", "conflict markers"]},
        ),
        qc("second", FAIL, attempt=1),
    ]
    curtain.hold("second", until="first")

    journey = await go(tmp_path, [sharer("first"), sharer("second", max_retries=1)], parts)

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert journey.facts.files["shared.txt"] == both
    assert invariants.broken(journey.facts) == []
