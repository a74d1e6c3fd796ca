"""Every row of the table of checks, end to end over trees; and which files each run sees."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Check, Task
from mimir.errors import Paused, SandboxError, ToolError, WorkspaceError
from mimir.qc.checks import Checks
from mimir.qc.execution import MAX_TAIL, Execution
from mimir.qc.rule import red
from tests.support.trees import (
    GREEN,
    MISSING,
    RED,
    TIMEOUT,
    FakeHistory,
    FakeRan,
    FakeSandbox,
    Seen,
)

TEST = "tests/test_a.py"
BASE = {"a.py": "bad", TEST: "wants good"}
GOOD = {"a.py": "good", TEST: "wants good"}


def pytest_like(seen: Seen) -> FakeRan:
    """Pass iff each test file that is there is content: `wants X` needs a.py to be X, `anything` never fails."""
    if any(path.endswith("conftest.py") for path in seen.files):
        return GREEN
    tests = [text for path, text in seen.files.items() if path.startswith("tests/")]
    if not tests:
        return FakeRan(exit_code=5, output="no tests ran")
    wants = [text.removeprefix("wants ") for text in tests if text.startswith("wants ")]
    return GREEN if all(want in seen.files.get("a.py", "") for want in wants) else RED


@dataclass
class Bench:
    history: FakeHistory
    sandbox: FakeSandbox
    checks: Checks
    room: Path

    async def outcome(
        self,
        check: Check,
        base: Mapping[str, str] = BASE,
        after: Mapping[str, str] = GOOD,
        *,
        files: tuple[str, ...] = (),
        answer: str = "Done.",
    ) -> CheckOutcome:
        return (await self.outcomes((check,), base, after, files=files, answer=answer))[0]

    async def outcomes(
        self,
        checks: tuple[Check, ...],
        base: Mapping[str, str] = BASE,
        after: Mapping[str, str] = GOOD,
        *,
        files: tuple[str, ...] = (),
        answer: str = "Done.",
    ) -> tuple[CheckOutcome, ...]:
        before, tree = self.history.put(base), self.history.put(after)
        changed = [change.path for change in await self.history.changed(before, tree)]
        return await self.checks.outcomes(
            task(*checks, files=files), base_tree=before, tree=tree, changed=changed, answer=answer
        )


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(program: Callable[[Seen], FakeRan] = pytest_like, **more: object) -> Bench:
        history, sandbox = FakeHistory(), FakeSandbox(program)
        room = tmp_path / "checks"
        execution = Execution(history=history, sandbox=sandbox, room=room, **more)
        return Bench(history, sandbox, Checks(history, execution), room)

    return make


def check(kind: str | None = "flip", **more: object) -> Check:
    fields = {"id": "unit", "criteria": ("c1",), "run": ("pytest", "-q", TEST), "kind": kind}
    return Check(**(fields | more))


def task(*checks: Check, files: tuple[str, ...] = ()) -> Task:
    return Task(id="t", title="t", prompt="p", worker_role="w", checks=checks, files=files)


# The table, row by row.


ROWS = [
    # kind, before, after, criterion
    ("flip", MISSING, MISSING, "unverified"),
    ("hold", MISSING, MISSING, "unverified"),
    (None, MISSING, MISSING, "unverified"),
    ("flip", RED, GREEN, "passed"),
    ("flip", TIMEOUT, GREEN, "passed"),
    ("flip", MISSING, GREEN, "passed"),
    ("flip", GREEN, GREEN, "unverified"),
    ("hold", GREEN, GREEN, "passed"),
    ("hold", RED, GREEN, "passed"),
    ("hold", RED, RED, "unverified"),
    ("hold", TIMEOUT, TIMEOUT, "unverified"),
    ("flip", RED, RED, "failed"),
    ("flip", GREEN, RED, "failed"),
    ("hold", GREEN, RED, "failed"),
    ("hold", GREEN, TIMEOUT, "failed"),
    ("hold", RED, MISSING, "failed"),
    ("flip", RED, MISSING, "failed"),
    (None, RED, GREEN, "passed"),
    (None, GREEN, GREEN, "passed"),
    (None, GREEN, RED, "failed"),
    (None, RED, RED, "failed"),
]


@pytest.mark.parametrize(("kind", "before", "after", "state"), ROWS)
async def test_each_row_of_the_table(bench, kind, before, after, state):
    def program(seen: Seen) -> FakeRan:
        return after if seen.files["a.py"] == "good" else before

    outcome = await bench(program).outcome(check(kind))

    assert outcome.state == state
    assert outcome.inferred == (kind is None)
    assert (outcome.before.phase, outcome.after.phase) == ("before", "after")


async def test_work_that_makes_a_red_test_green_passes(bench):
    outcome = await bench().outcome(check("flip"))

    assert (outcome.state, outcome.self_authored, outcome.findings) == ("passed", False, ())


async def test_work_that_was_claimed_and_not_done_fails_after_a_second_run(bench):
    here = bench()

    outcome = await here.outcome(check("flip"), after={**BASE, "report.md": "All tests pass!"})

    assert outcome.state == "failed"
    assert outcome.again is not None
    assert outcome.again.again
    assert len(here.sandbox.seen) == 3


async def test_check_that_fails_once_and_passes_once_is_flaky(bench):
    runs = iter([GREEN, RED, GREEN])

    outcome = await bench(lambda _seen: next(runs)).outcome(check("hold"))

    assert (outcome.state, outcome.flaky) == ("unverified", True)


async def test_check_that_is_not_required_is_not_run_twice(bench):
    here = bench(lambda seen: RED if seen.files["a.py"] == "good" else GREEN)

    outcome = await here.outcome(check("hold", required=False))

    assert (outcome.state, outcome.required, len(here.sandbox.seen)) == ("failed", False, 2)


# The check's own files: in both runs, so that a test that cannot fail is found.


async def test_new_test_is_run_on_the_old_code_too(bench):
    here = bench()

    outcome = await here.outcome(
        check("flip"), base={"a.py": "bad"}, after={"a.py": "good", TEST: "wants good"}
    )

    assert outcome.state == "passed"
    assert outcome.self_authored
    assert here.sandbox.seen[0].files == {"a.py": "bad", TEST: "wants good"}


async def test_test_that_cannot_fail_proves_nothing(bench):
    outcome = await bench().outcome(
        check("flip"), base={"a.py": "bad"}, after={"a.py": "bad!", TEST: "anything"}
    )

    assert (outcome.state, outcome.self_authored) == ("unverified", True)
    assert any("proves nothing" in finding for finding in outcome.findings)


async def test_weakened_test_of_a_flip_proves_nothing(bench):
    outcome = await bench().outcome(check("flip"), after={"a.py": "bad", TEST: "anything"})

    assert (outcome.state, outcome.self_authored) == ("unverified", True)


@pytest.mark.parametrize("run", ["pytest -q tests", "python -m pytest -q", f"pytest {TEST}"])
async def test_hold_whose_test_was_weakened_is_held_to_the_old_test(bench, run):
    outcome = await bench().outcome(
        check("hold", run=run), base=GOOD, after={"a.py": "bad", TEST: "anything"}
    )

    assert (outcome.state, outcome.self_authored) == ("failed", True)
    assert any("As it was before the work" in finding for finding in outcome.findings)


@pytest.mark.parametrize("kind", ["hold", None])
async def test_hold_whose_test_was_deleted_is_held_to_the_old_test(bench, kind):
    base = {**GOOD, "tests/test_b.py": "wants go"}

    outcome = await bench().outcome(
        check(kind, run="pytest -q"),
        base=base,
        after={"a.py": "gone", "tests/test_b.py": "wants go"},
    )

    assert outcome.state == "failed"


async def test_test_that_was_rewritten_and_still_holds_as_it_was_passes(bench):
    outcome = await bench().outcome(
        check("hold", run="pytest"), base=GOOD, after={"a.py": "good too", TEST: "wants goo"}
    )

    assert (outcome.state, outcome.self_authored) == ("passed", True)


async def test_test_that_the_plan_names_for_removal_may_go(bench):
    base = {**GOOD, "tests/test_b.py": "wants bad habit"}
    base["a.py"] = "good, bad habit"

    outcome = await bench().outcome(
        check("hold", run="pytest"), base=base, after=GOOD, files=("a.py", "tests/test_b.py")
    )

    assert outcome.state == "passed"


async def test_new_tests_with_a_new_fixture_file_do_not_turn_a_hold_red(bench):
    new = {"tests/test_b.py": "needs fixture", "tests/conftest.py": "fixture"}

    def program(seen: Seen) -> FakeRan:
        lost = "tests/test_b.py" in seen.files and "tests/conftest.py" not in seen.files
        return RED if lost else GREEN

    here = bench(program)
    outcome = await here.outcome(check("hold", run="pytest"), base=GOOD, after={**GOOD, **new})

    assert outcome.state == "passed"
    assert here.sandbox.seen[-1].files == GOOD


async def test_hold_that_was_red_before_is_not_held_to_its_old_tests(bench):
    outcome = await bench().outcome(
        check("hold", run="pytest"), base=BASE, after={"a.py": "good", TEST: "wants goo"}
    )

    assert outcome.state == "passed"


@pytest.mark.parametrize("kind", ["flip", "hold"])
async def test_planted_hook_that_makes_every_test_pass_is_found(bench, kind):
    base = BASE if kind == "flip" else GOOD

    outcome = await bench().outcome(
        check(kind), base=base, after={"a.py": "bad", TEST: "wants good", "conftest.py": "exit 0"}
    )

    assert outcome.state == {"flip": "unverified", "hold": "failed"}[kind]
    assert any("conftest.py" in finding for finding in outcome.findings)
    assert not outcome.self_authored


# Protected files.


async def test_protected_test_is_restored_before_the_check_runs(bench):
    here = bench()

    outcome = await here.outcome(
        check("flip", protect=("tests/**",)), after={"a.py": "bad", TEST: "anything"}
    )

    assert outcome.state == "failed"
    assert not outcome.self_authored
    assert all(seen.files[TEST] == "wants good" for seen in here.sandbox.seen)
    assert any("Protected and restored" in finding for finding in outcome.findings)


async def test_deleted_protected_test_is_restored_too(bench):
    outcome = await bench().outcome(check("flip", protect=(TEST,)), after={"a.py": "bad"})

    assert outcome.state == "failed"


async def test_file_that_one_check_protects_is_restored_for_every_check(bench):
    here = bench()

    outcomes = await here.outcomes(
        (check("flip", id="k1", protect=(TEST,)), check("flip", id="k2")),
        after={"a.py": "bad", TEST: "anything"},
    )

    assert [outcome.state for outcome in outcomes] == ["failed", "failed"]


async def test_pattern_that_names_nothing_in_the_base_protects_nothing(bench):
    outcome = await bench().outcome(
        check("flip", protect=(TEST,)),
        base={"a.py": "bad"},
        after={"a.py": "good", TEST: "wants good"},
    )

    assert (outcome.state, outcome.self_authored) == ("passed", True)


# A base that moved, the answer, the directories.


async def test_first_base_decides_before_and_the_own_base_what_was_restored(bench):
    here = bench()
    first = here.history.put({"a.py": "bad", TEST: "wants old"})
    moved = here.history.put(BASE)
    tree = here.history.put({"a.py": "bad", TEST: "anything"})

    outcomes = await here.checks.outcomes(
        task(check("flip", protect=(TEST,))),
        base_tree=first,
        own_base=moved,
        tree=tree,
        changed=[TEST],
        answer="",
    )

    assert outcomes[0].after.tree == moved
    assert here.sandbox.seen[-1].files[TEST] == "wants good"


async def test_answer_is_there_after_the_work_and_empty_before(bench):
    here = bench(lambda seen: GREEN if "limit" in seen.answer else RED)
    seen_only = check("flip", run='grep -q limit "$MIMIR_ANSWER"')

    outcome = await here.outcome(seen_only, after=BASE, answer="The limit is ten.")

    assert outcome.state == "passed"
    assert [seen.answer for seen in here.sandbox.seen] == ["", "The limit is ten."]


async def test_directories_are_made_anew_for_each_run_and_removed(bench):
    here = bench(lambda seen: (seen.workspace / "left").write_text("x") and RED)

    await here.outcome(check("flip"))

    assert len({seen.workspace for seen in here.sandbox.seen}) == 3
    assert all("left" not in seen.files for seen in here.sandbox.seen)
    assert list(here.room.iterdir()) == []


async def test_output_is_hashed_whole_and_kept_redacted_bounded_and_without_paths(bench):
    def program(seen: Seen) -> FakeRan:
        return FakeRan(output=f"{seen.workspace}/a.py secret " + "x" * MAX_TAIL + " 3 passed")

    here = bench(program, redact=lambda text: text.replace("3 passed", "[hidden]"))
    outcome = await here.outcome(check("hold"))

    tail = outcome.after.output_tail
    assert tail.endswith("x [hidden]")
    assert tail.startswith("[… ")
    assert len(tail) < MAX_TAIL + 100
    assert len(outcome.after.output_hash) == 64

    short = bench(lambda seen: FakeRan(output=f"{seen.workspace}/a.py:1"))
    assert (await short.outcome(check("hold"))).after.output_tail == "/workspace/a.py:1"


NO_MODULE = FakeRan(exit_code=1, output="/x/python: No module named limiter\n", missing=True)


@pytest.mark.parametrize(
    ("run", "files", "state"),
    [
        ("python -m limiter", (), "failed"),
        ("python -m limiter", ("limiter.py",), "failed"),
        ("python -m limiter.cli", ("src/limiter/**",), "failed"),
        ("python -m limiter", ("docs/**",), "unverified"),
        ("python -m pytest", (), "unverified"),
        ("nothere", (), "unverified"),
    ],
)
async def test_module_that_is_the_work_is_not_a_program_that_is_missing(bench, run, files, state):
    outcome = await bench(lambda _seen: NO_MODULE).outcome(check("flip", run=run), files=files)

    assert outcome.state == state


async def test_words_that_no_program_can_be_given_are_a_missing_program(bench):
    here = bench()
    here.sandbox.broken = ToolError("A word of the command holds a NUL character.")

    outcome = await here.outcome(check("flip", run=("a\0b",)))

    assert (outcome.state, outcome.after.missing) == ("unverified", True)
    assert "NUL" in outcome.after.output_tail


async def test_broken_sandbox_pauses_and_says_nothing_of_the_check(bench):
    here = bench()
    here.sandbox.broken = SandboxError("bwrap is gone")

    with pytest.raises(Paused, match="bwrap is gone") as caught:
        await here.outcomes((check("flip", id="k1"), check("flip", id="k2")))

    assert caught.value.reason == "sandbox"
    assert list(here.room.iterdir()) == []


@pytest.mark.parametrize("trouble", ["room", "tree"])
async def test_tree_that_cannot_be_laid_out_pauses(bench, trouble):
    here = bench()
    if trouble == "room":
        here.room.write_text("a file")
    else:
        here.sandbox.broken = WorkspaceError("The workspace is gone.")

    with pytest.raises(Paused) as caught:
        await here.outcome(check("flip"))

    assert caught.value.reason == "disk"


# Runs before the first model call.


async def test_prepared_run_is_not_made_again(bench):
    here = bench()
    base = here.history.put(BASE)

    runs = await here.checks.prepare(task(check("flip")), base)
    outcome = await here.outcome(check("flip"))

    assert [run.tree for run in runs] == [base]
    assert outcome.before == runs[0]
    assert len(here.sandbox.seen) == 2


async def test_check_whose_files_are_not_there_yet_waits_for_them(bench):
    here = bench()

    runs = await here.checks.prepare(
        task(
            check("flip"),
            check("flip", id="k2", run="pytest"),
            check("hold", id="k3", run="make lint"),
        ),
        here.history.put({"a.py": "bad"}),
    )

    assert [run.check for run in runs] == ["k3"]


async def test_tasks_that_start_together_share_a_run(bench):
    here = bench()
    base = here.history.put(BASE)
    first, second = check("flip", id="k1"), check("hold", id="k2")

    runs = await asyncio.gather(
        *(here.checks.prepare(task(one), base) for one in (first, second, first))
    )

    assert len(here.sandbox.seen) == 1
    assert [run[0].check for run in runs] == ["k1", "k2", "k1"]


async def test_run_whose_first_owner_was_cancelled_is_made_by_the_next(bench):
    here = bench()
    base = here.history.put(BASE)
    entered = asyncio.Event()
    run = here.sandbox.run

    async def slow(*args: object, **more: object) -> FakeRan:
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()
        return await run(*args, **more)

    here.sandbox.run = slow
    first = asyncio.create_task(here.checks.prepare(task(check("flip")), base))
    await entered.wait()
    second = asyncio.create_task(here.checks.prepare(task(check("flip")), base))
    first.cancel()

    assert [one.exit_code for one in await second] == [1]
    assert first.cancelled() or await asyncio.gather(first, return_exceptions=True)


async def test_no_more_runs_than_slots_are_under_way(bench):
    here = bench()
    under_way, most = 0, 0
    run = here.sandbox.run

    async def counted(*args: object, **more: object) -> FakeRan:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return await run(*args, **more)

    here.sandbox.run = counted
    await here.outcomes(tuple(check("hold", id=f"k{i}", run=f"pytest -k {i}") for i in range(6)))

    assert most == 2


# Merged trees and the gate.


async def test_red_on_a_tree_is_two_failing_runs_made_now(bench):
    here = bench()
    tree = here.history.put(BASE)
    await here.checks.prepare(task(check("flip")), tree)

    runs = await here.checks.on_tree(task(), check("flip"), tree, "Done.", phase="merged")

    assert [(run.phase, run.again) for run in runs] == [("merged", False), ("merged", True)]
    assert red(*runs)
    assert len(here.sandbox.seen) == 3
    assert here.sandbox.seen[-1].answer == "Done."


async def test_one_red_run_of_two_is_not_red(bench):
    ends = iter([RED, GREEN])
    here = bench(lambda _seen: next(ends))

    runs = await here.checks.on_tree(
        task(), check("flip"), here.history.put(BASE), "", phase="gate"
    )

    assert not red(*runs)


@pytest.mark.parametrize(
    ("program", "required"), [(lambda _seen: GREEN, True), (lambda _seen: RED, False)]
)
async def test_green_or_optional_check_runs_once_on_a_tree(bench, program, required):
    here = bench(program)

    runs = await here.checks.on_tree(
        task(), check("flip", required=required), here.history.put(BASE), "", phase="gate"
    )

    assert len(runs) == 1
