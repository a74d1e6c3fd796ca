"""Each row of the table of checks, from a plan to the end of its run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest

from mimir.domain.plan import Check, Criterion
from mimir.workspace.sandbox.sandbox import Sandbox
from tests.support import invariants
from tests.support.whole_run import (
    README,
    Journey,
    Turn,
    check,
    holds,
    plan,
    shell,
    start,
    step,
    travel,
    worker,
    writes,
)

TOOL = "#!/bin/sh\nexit 0\n"
TEST = "import sys\nsys.path.insert(0, '.')\nfrom code_a import f\nassert f() == 3\n"
CODE = writes("code_a.py", "def f():\n    return 3\n")
GOOD = writes("a.txt", "a\n")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: the files, the check, the actions of the worker, and the expected result of the check."""

    check: Check
    state: str
    words: str = ""
    """In the check's findings."""
    files: Mapping[str, str] = field(default_factory=lambda: README)
    turns: Sequence[Turn] = (GOOD,)
    cause: str = ""
    """Why the task failed; empty: it is completed."""
    self_authored: bool = False
    kind: str = "flip"


ROWS = {
    "any: program missing before and after": Row(
        check=check("no-such-program", "a.txt"),
        state="broken",
        words="not on this machine",
    ),
    "flip: red, green": Row(check=holds("a.txt", "^a$"), state="passed"),
    "flip: program missing in the workspace, green": Row(
        check=check("sh", "./tool.sh"), state="passed", turns=(writes("tool.sh", TOOL),)
    ),
    "flip: green, green": Row(
        check=holds("README.md", "project"),
        state="broken",
        words="proves nothing",
    ),
    "flip: red, red": Row(check=holds("a.txt", "never"), state="failed", cause="check_failed"),
    "flip: green, red": Row(
        check=check("test", "!", "-e", "a.txt"), state="failed", cause="check_failed"
    ),
    "hold: green, green": Row(
        check=holds("README.md", "project", kind="hold"), state="passed", kind="hold"
    ),
    "hold: red, green": Row(check=holds("a.txt", "^a$", kind="hold"), state="passed", kind="hold"),
    "hold: red, red": Row(
        check=holds("README.md", "never", kind="hold"),
        state="broken",
        words="red before the work",
        kind="hold",
    ),
    "hold: green, red": Row(
        check=check("test", "!", "-e", "a.txt", kind="hold"),
        state="failed",
        cause="check_failed",
        kind="hold",
    ),
    "any: timeout": Row(
        check=check("sh", "-c", "test ! -e a.txt || sleep 60", timeout_seconds=0.7),
        state="failed",
        words="time limit",
        cause="check_failed",
    ),
    "any: timeout before and after": Row(
        check=check("sleep", "60", timeout_seconds=0.4), state="broken", words="time limit"
    ),
    "any: program of the project missing only now": Row(
        check=check("./tool.sh", kind="hold"),
        state="failed",
        files={**README, "tool.sh": TOOL},
        turns=(shell("rm tool.sh"),),
        cause="check_failed",
        kind="hold",
    ),
    "none given: fails, so flip": Row(
        check=holds("a.txt", "^a$", kind=None), state="passed", words="taken as 'flip'"
    ),
    "none given: passes, so hold": Row(
        check=holds("README.md", "project", kind=None),
        state="passed",
        words="taken as 'hold'",
        kind="hold",
    ),
    "self-authored": Row(
        check=check("python", "-S", "tests/test_a.py"),
        state="passed",
        turns=(writes("tests/test_a.py", TEST), CODE),
        self_authored=True,
    ),
    "self-authored, and cannot fail": Row(
        check=check("python", "-S", "tests/test_a.py"),
        state="unverified",
        words="proves nothing",
        turns=(writes("tests/test_a.py", "print('1 passed')\n"), CODE),
        self_authored=True,
        cause="unverifiable",
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_row_of_the_table(row: Row, tmp_path: Path):
    retries = 0 if row.cause == "check_failed" else 2
    task = step("a", checks=(row.check,), max_retries=retries)
    project = start(tmp_path, row.files)
    for name in row.files:
        (project / name).chmod(0o755)

    journey = await travel(project, plan(task), [worker("a", *row.turns, "It is done.")])

    outcome = journey.facts.outcomes("a")["unit"]
    assert (outcome.state, outcome.kind) == (row.state, row.kind)
    assert row.words in " ".join(outcome.findings)
    assert outcome.self_authored == row.self_authored
    ended(journey, row.cause)
    assert row.words in journey.report
    assert ("self-authored" in journey.report) == row.self_authored
    assert len(journey.facts.attempts("a")) == 1
    assert invariants.broken(journey.facts) == []


def ended(journey: Journey, cause: str) -> None:
    """Say how a run of one task must have ended."""
    if not cause:
        assert journey.statuses == {"a": "completed"}
        if journey.facts.outcomes("a")["unit"].state == "broken":
            assert (journey.ending.outcome, journey.ending.exit_code) == ("completed_with_gaps", 1)
            named = "Check 'unit' of a is broken: "
            assert journey.ending.message.startswith(named)
            assert journey.status["broken_checks"] == [journey.ending.message]
            assert journey.report_json["because"].startswith(named)
            return
        assert (journey.ending.outcome, journey.ending.exit_code) == ("completed", 0)
        return
    assert journey.statuses == {"a": "failed"}
    assert (journey.ending.outcome, journey.ending.exit_code) == ("failed", 1)
    assert journey.failure("a")["cause"] == cause
    assert f"mimir/{journey.ending.run}-a-1" in journey.facts.branches


@pytest.mark.parametrize("good", ["again", "first"])
async def test_two_runs_that_differ_prove_nothing(
    good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The world outside the sandbox changes from run to run; a green second run makes no green check."""
    outside = tmp_path / "outside"
    outside.mkdir()
    runs, run = count(), Sandbox.run

    async def counted(self: Sandbox, argv: Sequence[str], **named: object) -> object:
        if argv[0] == "sh":  # before, after, again
            green = next(runs) == (2 if good == "again" else 0)
            (outside / "world").write_text("fair" if green else "foul", encoding="utf-8")
        return await run(self, argv, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Sandbox, "run", counted)
    flaky = check("sh", "-c", f"grep -q fair {outside}/world", kind="flip")

    journey = await travel(
        start(tmp_path),
        plan(step("a", checks=(flaky,), max_retries=2)),
        [worker("a", GOOD, "It is done.")],
        sandbox__read_only=[str(outside)],
    )

    outcome = journey.facts.outcomes("a")["unit"]
    if good == "first":  # red twice after the work: it failed
        assert (outcome.state, outcome.flaky) == ("failed", False)
        assert outcome.again is not None
        return
    assert (outcome.state, outcome.flaky) == ("unverified", True)
    ended(journey, "unverifiable")
    assert len(journey.facts.attempts("a")) == 1
    assert "flaky" in journey.report


def two(first: Check, second: Check | None, *, points: int = 60) -> Sequence[object]:
    criteria = (
        Criterion(id="c1", text="the first", points=Fraction(points)),
        Criterion(id="c2", text="the second", points=Fraction(100 - points)),
    )
    checks = [first, *([replace(second, id="other", criteria=("c2",))] if second else [])]
    return criteria, tuple(checks)


async def test_a_project_that_was_red_before_uses_up_no_attempt(tmp_path: Path):
    criteria, checks = two(holds("a.txt", "^a$"), holds("README.md", "never", kind="hold"))
    task = step("a", criteria=criteria, checks=checks, max_retries=2)

    journey = await travel(start(tmp_path), plan(task), [worker("a", GOOD, "It is done.")])

    assert journey.statuses == {"a": "completed"}
    assert (journey.ending.outcome, journey.ending.exit_code) == ("completed_with_gaps", 1)
    assert len(journey.facts.attempts("a")) == 1
    assert not journey.facts.tasks["a"].get("qcFailuresCount")
    [told] = journey.status["tasks"]
    assert told["criteria"] == {"executed": 1, "judged": 1, "unverified": 0, "failed": 0}
    assert told["score"] == 100
    assert "red before the work" in journey.report
    assert invariants.broken(journey.facts) == []


async def test_broken_check_of_a_critical_criterion_does_not_reject_the_work(tmp_path: Path):
    criteria, checks = two(holds("a.txt", "^a$"), holds("README.md", "project"), points=90)
    criteria = (criteria[0], replace(criteria[1], critical=True))
    task = step("a", criteria=criteria, checks=checks, max_retries=2)
    journey = await travel(start(tmp_path), plan(task), [worker("a", GOOD, "It is done.")])

    assert journey.statuses == {"a": "completed"}
    assert (journey.ending.outcome, journey.ending.exit_code) == ("completed_with_gaps", 1)
    [told] = journey.status["tasks"]
    assert told["criteria"]["judged"] == 1


async def test_a_failed_criterion_that_weighs_little_is_a_gap(tmp_path: Path):
    """Only one that no required check decides can be failed and accepted."""
    criteria, checks = two(holds("a.txt", "^a$"), None, points=90)
    says = {"auto": "pass", "failed": ["c2"], "score": 90}
    journey = await travel(
        start(tmp_path),
        plan(step("a", criteria=criteria, checks=checks)),
        [
            worker("a", GOOD, "It is done."),
            {"role": "qc", "turns": [{"verdict": says, "repeat": "forever"}]},
        ],
    )

    assert journey.statuses == {"a": "completed"}
    assert (journey.ending.outcome, journey.ending.exit_code) == ("completed_with_gaps", 1)
    assert journey.facts.tasks["a"]["qcScore"] == 90


TESTS = {**README, "tests/test_a.sh": "grep -q '^a$' a.txt\n"}
GUARDED = check("sh", "tests/test_a.sh", protect=("tests/test_a.sh",))


async def test_changed_protected_test_is_restored_and_fails_the_attempt(tmp_path: Path):
    turns = (GOOD, shell("echo true > tests/test_a.sh"), "All tests pass.")

    journey = await travel(
        start(tmp_path, TESTS), plan(step("a", checks=(GUARDED,))), [worker("a", *turns)]
    )

    assert journey.statuses == {"a": "failed"}
    outcome = journey.facts.outcomes("a")["unit"]
    assert (outcome.state, outcome.self_authored) == ("passed", False)
    assert (
        "The protected file 'tests/test_a.sh' was changed." in journey.facts.judgement("a").reasons
    )
    assert journey.facts.work("a").protected == ("tests/test_a.sh",)
    assert invariants.broken(journey.facts) == []


async def test_a_protected_test_cannot_be_written_with_the_file_tools(tmp_path: Path):
    turns = (GOOD, writes("tests/test_a.sh", "true\n"), "All tests pass.")

    journey = await travel(
        start(tmp_path, TESTS), plan(step("a", checks=(GUARDED,))), [worker("a", *turns)]
    )

    assert journey.statuses == {"a": "completed"}
    [_, refused] = journey.facts.tool_calls("a")
    assert "protect" in str(refused["valueJson"])
    assert journey.facts.files["tests/test_a.sh"] == TESTS["tests/test_a.sh"]


@pytest.mark.parametrize("red", [2, 99])
async def test_green_check_is_repeated_as_often_as_the_user_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, red: int
):
    outside = tmp_path / "outside"
    outside.mkdir()
    runs, run = count(), Sandbox.run

    async def counted(self: Sandbox, argv: Sequence[str], **named: object) -> object:
        if argv[0] == "sh":  # before, then as often as it is green
            green = next(runs) not in (0, red)
            (outside / "world").write_text("fair" if green else "foul", encoding="utf-8")
        return await run(self, argv, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Sandbox, "run", counted)
    weather = check("sh", "-c", f"grep -q fair {outside}/world", kind="flip")

    journey = await travel(
        start(tmp_path),
        plan(step("a", checks=(weather,))),
        [worker("a", GOOD, "It is done.")],
        sandbox__read_only=[str(outside)],
        checks__repeat=3,
        checks__controls="never",
    )

    outcome = journey.facts.outcomes("a")["unit"]
    if red == 2:
        assert (outcome.state, outcome.flaky, next(runs)) == ("unverified", True, 3)
        return
    assert (outcome.state, outcome.flaky) == ("passed", False)
    assert journey.statuses == {"a": "completed"}
    assert next(runs) == 4  # before, and three green ones, which the gate uses
