"""A passed check on trees that other tasks changed: files left out, files kept, and the run that decides."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from mimir.domain.evidence import CheckRun, ControlResult
from mimir.domain.plan import Check, Task
from mimir.domain.test_results import TestResults
from mimir.qc.checks.check_execution import Phase
from mimir.qc.checks.regression import AcceptedTask, RegressionCheck
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.evidence.payloads import run_body
from tests.support.fake_check_site import GOOD, TEST, check
from tests.support.fake_trees import GREEN, RED, FakeRan, Seen

HOOK = {"tests/conftest.py": "skips all"}
BAD = {**GOOD, "a.py": "bad"}
HOOKED = {**BAD, **HOOK}
HELD: tuple[bool, ...] = (True,)
BROKEN: tuple[bool, ...] = (True, False, False)


def author(
    *changed: str, files: tuple[str, ...] = (), checks: tuple[Check, ...] = (), id: str = "other"
) -> AcceptedTask:
    task = Task(id=id, title=id, prompt=id, worker_role="w", files=files, checks=checks)
    return AcceptedTask(
        task=task, attempt=1, answer="", passed=frozenset(), changed=frozenset(changed), tree=""
    )


@pytest.fixture
def look(bench):
    """Run the check of a task that was accepted on `then`, on the tree `now`."""

    async def run(
        now: Mapping[str, str],
        *others: AcceptedTask,
        then: Mapping[str, str] = GOOD,
        passed: tuple[str, ...] = ("unit",),
        made: tuple[str, ...] = (),
        program: Callable[[Seen], FakeRan] | None = None,
        controlled: bool = False,
        **more: object,
    ) -> tuple[CheckRun, ...]:
        here = bench(program) if program else bench()
        one = check(**({"run": ("pytest", "-q", "tests")} | more))
        mine = AcceptedTask(
            task=Task(id="t", title="t", prompt="p", worker_role="w", checks=(one,)),
            attempt=1,
            answer="Done.",
            passed=frozenset(passed),
            changed=frozenset(made),
            tree=here.history.put(then),
        )
        tree = here.history.put(now)
        runs = await here.checks.on_tree(
            mine, one, tree, (mine, *others), phase="gate", controlled=controlled
        )
        assert all((run.stands_for or run.tree) == tree for run in runs)
        assert controlled or all(seen.answer == "Done." for seen in here.sandbox.seen)
        return runs

    return run


def greens(runs: tuple[CheckRun, ...]) -> tuple[bool, ...]:
    return tuple(run.green for run in runs)


async def test_new_hook_of_another_task_is_removed(look):
    runs = await look(HOOKED, author("a.py", *HOOK))

    assert greens(runs) == BROKEN
    assert [run.again for run in runs] == [False, False, True]
    assert [bool(run.stands_for) for run in runs] == [False, True, True]
    assert run_body(runs[1])["standsFor"] == runs[0].tree
    assert "standsFor" not in run_body(runs[0])


async def test_right_work_passes_with_the_earlier_check_files(look):
    assert greens(await look({**GOOD, **HOOK}, author(*HOOK))) == (True, True)


@pytest.mark.parametrize(
    ("files", "seen"), [(("tests/conftest.py",), HELD), (("tests/**",), BROKEN), ((), BROKEN)]
)
async def test_file_that_configures_a_runner_must_be_named_itself(look, files, seen):
    runs = await look({**BAD, **HOOK}, author("a.py", *HOOK, files=files))

    assert greens(runs)[: len(seen)] == seen
    assert runs[-1].green == seen[-1]


async def test_new_tests_go_with_the_hook_that_they_may_need(look):
    """The new test expects a value that only the hook provides."""
    now = {**GOOD, **HOOK, "tests/test_b.py": "wants something else"}

    assert greens(await look(now, author("tests/test_b.py", *HOOK))) == (True, True)


@pytest.mark.parametrize(
    "more", [{"passed": ()}, {"required": False}], ids=["it was not passed", "nobody requires it"]
)
async def test_a_check_that_proved_nothing_runs_as_it_is(look, more):
    assert greens(await look(HOOKED, author("a.py", *HOOK), **more)) == HELD


async def test_change_by_the_user_between_runs_is_accepted(look):
    """Between a run and the one that takes it over: no task did that."""
    assert greens(await look(HOOKED, author("a.py"))) == HELD


async def test_failing_check_is_not_repeated_with_other_files(look):
    runs = await look({**BAD, **HOOK}, author("a.py", *HOOK), program=lambda seen: RED)

    assert [(run.green, run.again) for run in runs] == [(False, False), (False, True)]


async def test_one_failing_run_with_restored_files_is_not_red(look):
    ends = iter([GREEN, RED, GREEN])

    runs = await look(HOOKED, author("a.py", *HOOK), program=lambda seen: next(ends))

    assert greens(runs) == (True, False, True)


PATCHES = {"tests/test_aaa.py": "mends"}
REPLACES = {"tests/a.py": "good"}


def passes_if_patched(seen: Seen) -> FakeRan:
    """Pass if the work is good, or something among the tests makes it so."""
    helps = not seen.files.keys().isdisjoint((*PATCHES, *REPLACES))
    return GREEN if seen.files["a.py"] == "good" or helps else RED


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        (("a.py", *PATCHES), BROKEN),
        (tuple(PATCHES), HELD),  # a task that does not touch the result cannot have broken it
    ],
)
async def test_new_test_of_another_task_does_not_repair_its_damage(look, changed, seen):
    now = {**BAD, **PATCHES}
    runs = await look(now, author(*changed), made=("a.py",), program=passes_if_patched)
    assert greens(runs) == seen


async def test_new_tests_of_another_task_without_effect_on_old_ones_are_kept(look):
    runs = await look({**GOOD, **PATCHES}, author("a.py", *PATCHES), made=("a.py",))
    assert greens(runs) == (True, True)


async def test_module_of_another_task_does_not_replace_what_it_broke(look):
    one = {"run": ("pytest", TEST)}
    now = {**BAD, **REPLACES}
    assert (
        greens(await look(now, author("a.py", *REPLACES), program=passes_if_patched, **one))
        == BROKEN
    )
    named = author("a.py", *REPLACES, files=tuple(REPLACES))
    assert greens(await look(now, named, program=passes_if_patched, **one)) == HELD


class _ForgedReports:
    """Executor of checks whose report has all tests as passed, after any change."""

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        del answer, again
        results = TestResults(runner="pytest", passed=("a::t",))
        return CheckRun(
            check=check.id, argv=check.argv, phase=phase, tree=tree, exit_code=0, results=results
        )

    async def control(self, case: ControlCase) -> CheckRun:
        found = ControlResult(state="insensitive", method="changed expectations")
        return replace(case.after, control=found)


@pytest.mark.parametrize(("theirs", "is_green"), [("a.py", False), ("b.py", False), ("b.md", True)])
async def test_a_report_is_controlled_where_another_task_may_forge_it(
    bench, theirs: str, is_green: bool
):
    """Code that the work imports runs in the process that writes the report."""
    one, here = check(run=("pytest", "-q", "tests")), bench()
    mine = replace(author("a.py", checks=(one,), id="t"), passed=frozenset(("unit",)))
    place = (here.history, mine, one, (mine, author(theirs)), "gate")

    runs = await RegressionCheck(_ForgedReports(), *place, controlled=True).run(
        here.history.put(GOOD)
    )

    assert runs[0].green is is_green


@pytest.mark.parametrize("ends", [True, False])
async def test_a_script_that_the_work_of_another_ends_early_is_red(look, ends: bool):
    """Of a script the exit code alone is known, so it must fail if its end is made to fail."""
    then = {"a.py": "good", "check.sh": "echo 1\nuse a.py\n"}

    def script(seen: Seen) -> FakeRan:
        text = seen.files["check.sh"]
        is_ended = "ends" in seen.files["a.py"] and text.startswith("echo")
        return FakeRan(exit_code=1) if "exit 1" in text and not is_ended else FakeRan(output="1\n")

    runs = await look(
        {**then, "a.py": "ends" if ends else "good too"},
        author("a.py"),
        then=then,
        program=script,
        controlled=True,
        run=("sh", "check.sh"),
    )

    assert runs[-1].cut_short is ends
    assert runs[-1].green is not ends
