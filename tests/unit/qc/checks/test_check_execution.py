"""Every row of the table of checks, end to end over trees; and which files each run sees."""

# pyright: basic

import asyncio
from pathlib import Path

import pytest

from mimir.errors import Paused, SandboxError, ToolError, WorkspaceError
from mimir.qc.checks.check_execution import MAX_TAIL
from mimir.qc.checks.check_products import describe_renewed, read_snapshots
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.checks.regression import AcceptedTask
from tests.support.fake_check_site import BASE, GOOD, TEST, check, task
from tests.support.fake_trees import GREEN, RED, FakeRan, Seen


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


async def test_test_that_cannot_fail_proves_nothing(bench):
    new = "tests/test_b.py"

    outcome = await bench().outcome(
        check("flip", run=("pytest", "-q", new)),
        base={"a.py": "bad"},
        after={"a.py": "bad", new: "anything"},
    )

    assert outcome.state == "unverified"


async def test_regression_turns_a_hold_red_also_when_its_test_is_deleted(bench):
    outcome = await bench().outcome(check("hold"), base=GOOD, after={"a.py": "bad"})

    assert (outcome.state, outcome.again is not None) == ("failed", True)
    assert any("is an existing test" in finding for finding in outcome.findings)


async def test_test_file_of_a_hold_check_changes_only_if_the_task_names_it(bench):
    other = {"a.py": "bad", TEST: "wants bad"}

    held = await bench().outcome(check("hold"), base=GOOD, after=other)
    asked = await bench().outcome(check("hold"), base=GOOD, after=other, files=tuple(other))

    assert (held.state, asked.state) == ("failed", "passed")


async def test_the_first_tests_of_a_folder_may_bring_their_fixtures(bench):
    """An existing file there is no test: without the new ones no test would run at all."""
    base = {"a.py": "bad", "tests/__init__.py": ""}
    new = {"tests/conftest.py": "a fixture", "tests/test_b.py": "wants good"}

    def needs_fixture(seen: Seen) -> FakeRan:
        return GREEN if seen.files["a.py"] == "good" and new.keys() <= seen.files.keys() else RED

    outcome = await bench(needs_fixture).outcome(
        check("flip", run=("pytest", "-q", "tests")), base, {**base, "a.py": "good", **new}
    )

    assert (outcome.state, outcome.findings) == ("passed", ())


# A base that moved, the answer, the directories.


async def test_before_run_uses_the_first_base_and_restores_from_the_own_base(bench):
    here = bench()
    first = here.history.put({"a.py": "bad", TEST: "wants old"})
    moved = here.history.put(BASE)
    tree = here.history.put({"a.py": "bad", TEST: "anything"})

    outcomes = await here.checks.outcomes(
        CheckTarget(
            task=task(check("flip", protect=(TEST,))),
            first_base=first,
            own_base=moved,
            tree=tree,
            changed=[TEST],
        )
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


async def test_full_output_is_hashed_and_stored_redacted_bounded_and_without_paths(bench):
    def program(seen: Seen) -> FakeRan:
        return FakeRan(output=f"{seen.workspace}/a.py secret " + "x" * MAX_TAIL + " 3 passed")

    here = bench(program, redact=lambda text: text.replace("3 passed", "[hidden]"))
    outcome = await here.outcome(check("hold"))

    tail = outcome.after.output_tail
    assert tail.endswith("x [hidden]")
    assert "\n[… " in tail
    assert len(tail) < MAX_TAIL + 100
    assert len(outcome.after.output_hash) == 64

    short = bench(lambda seen: FakeRan(output=f"{seen.workspace}/a.py:1 1 passed"))
    assert (await short.outcome(check("hold"))).after.output_tail == "/workspace/a.py:1 1 passed"


NO_MODULE = FakeRan(
    exit_code=1, output="/x/python: No module named limiter\n", is_program_missing=True
)


@pytest.mark.parametrize(
    ("run", "files", "state"),
    [
        ("python -m limiter", (), "failed"),
        ("python -m limiter", ("limiter.py",), "failed"),
        ("python -m limiter.cli", ("src/limiter/**",), "failed"),
        ("python -m limiter", ("docs/**",), "broken"),
        ("python -m pytest", (), "broken"),
        ("nothere", (), "broken"),
    ],
)
async def test_module_that_is_the_work_is_not_a_program_that_is_missing(bench, run, files, state):
    outcome = await bench(lambda _seen: NO_MODULE).outcome(check("flip", run=run), files=files)

    assert outcome.state == state


async def test_arguments_that_no_program_accepts_are_a_missing_program(bench):
    here = bench()
    here.sandbox.broken = ToolError("A word of the command holds a NUL character.")

    outcome = await here.outcome(check("flip", run=("a\0b",)))

    assert (outcome.state, outcome.after.missing) == ("broken", True)
    assert "NUL" in outcome.after.output_tail


async def test_broken_sandbox_pauses_without_a_check_outcome(bench):
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

    assert [run.check for run in runs] == ["k2", "k3"]


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
    second = asyncio.Event()
    run = here.sandbox.run

    async def counted(*args: object, **more: object) -> FakeRan:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 2:
            second.set()
        await second.wait()
        for _ in range(50):  # a third run would begin meanwhile
            await asyncio.sleep(0)
        under_way -= 1
        return await run(*args, **more)

    here.sandbox.run = counted
    await here.outcomes(tuple(check("hold", id=f"k{i}", run=f"pytest -k {i}") for i in range(6)))

    assert most == 2


# Merged trees and the gate.


def accepted(answer: str = "") -> AcceptedTask:
    return AcceptedTask(task=task(), attempt=1, answer=answer, passed=frozenset({check("flip").id}))


async def test_red_on_a_tree_is_two_failing_runs_made_now(bench):
    here = bench()
    tree = here.history.put(BASE)
    await here.checks.prepare(task(check("flip")), tree)

    runs = await here.checks.on_tree(accepted("Done."), check("flip"), tree, (), phase="merged")

    assert [(run.phase, run.again) for run in runs] == [("merged", False), ("merged", True)]
    assert [run.green for run in runs] == [False, False]
    assert len(here.sandbox.seen) == 3
    assert here.sandbox.seen[-1].answer == "Done."


async def test_one_red_run_of_two_is_not_red(bench):
    ends = iter([RED, GREEN])
    here = bench(lambda _seen: next(ends))

    runs = await here.checks.on_tree(
        accepted(), check("flip"), here.history.put(BASE), (), phase="gate"
    )

    assert [run.green for run in runs] == [False, True]


@pytest.mark.parametrize(
    ("program", "required"), [(lambda _seen: GREEN, True), (lambda _seen: RED, False)]
)
async def test_green_or_optional_check_runs_once_on_a_tree(bench, program, required):
    here = bench(program)

    runs = await here.checks.on_tree(
        accepted(), check("flip", required=required), here.history.put(BASE), (), phase="gate"
    )

    assert len(runs) == 1


def test_a_run_may_add_to_a_stored_snapshot_and_not_renew_it(tmp_path: Path):
    snapshot = tmp_path / "a.snap"
    for then, renews in (("one\ntwo\nzero\n", False), ("one\nother\n", True), (None, True)):
        snapshot.write_text("one\nzero\n")
        stored = read_snapshots(tmp_path, ("a.snap", "a.py"))
        snapshot.write_text(then) if then else snapshot.unlink()
        assert bool(describe_renewed(stored, tmp_path)) is renews, then
