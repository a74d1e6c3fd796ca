"""Equal check runs are executed once; a run that may depend on the answer, and a red one, are not shared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from mimir.bootstrap.toolsets import ProjectSandbox
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.qc.checks.check_execution import CheckExecution
from mimir.qc.checks.shared_runs import SharedRuns
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.scope.test_owners import NO_PENDING_TESTS, PendingTests
from mimir.workspace.sandbox.sandbox import CommandResult
from tests.support.clock import FrozenClock
from tests.support.sandboxed_checks import Bench, check, opened


@dataclass
class CountingSandbox:
    inner: ProjectSandbox
    commands: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """That of the last command."""

    async def run(self, argv: Sequence[str], **more: Any) -> CommandResult:
        self.commands.append(argv)
        self.environment = more["env"]
        return await self.inner.run(argv, **more)


@pytest.fixture
async def site(tmp_path: Path) -> tuple[Bench, CountingSandbox, SharedRuns]:
    here = await opened(tmp_path, FrozenClock())
    counting = CountingSandbox(here.checks._execution._sandbox)
    execution = CheckExecution(
        history=here.history, sandbox=counting, room=tmp_path / "shared-checks"
    )
    return here, counting, SharedRuns(execution)


async def test_green_run_is_shared_between_checks_phases_and_answers(site):
    here, sandbox, runs = site

    first = await runs.run(check("hold", "true"), here.base, "after", answer="one")
    second = await runs.run(check("hold", "true"), here.base, "gate", answer="two")

    assert len(sandbox.commands) == 1
    assert (first.shared, second.shared, second.phase, second.green) == (False, True, "gate", True)


async def test_a_run_takes_those_before_the_work_from_its_planning_and_no_others(site):
    here, sandbox, runs = site
    one = check("hold", "true")

    CURRENT_ACTOR.set(Actor(run="plan-1"))
    await runs.run(one, here.base, "before")
    CURRENT_ACTOR.set(Actor(run="run-1", plan_run="plan-1"))
    before = await runs.run(one, here.base, "before")
    after = await runs.run(one, here.base, "after")
    CURRENT_ACTOR.set(Actor(run="run-2"))
    other = await runs.run(one, here.base, "before")

    assert [run.shared for run in (before, after, other)] == [True, False, False]
    assert len(sandbox.commands) == 3


async def test_run_whose_command_names_the_answer_is_shared_for_equal_answers_only(site):
    here, sandbox, runs = site

    for answer in ("one", "two", "two"):
        run = await runs.run(
            check("hold", 'test -s "$MIMIR_ANSWER"'), here.base, "after", answer=answer
        )
        assert run.green

    assert len(sandbox.commands) == 2


async def test_run_on_a_tree_that_names_the_answer_is_shared_for_equal_answers_only(site):
    here, sandbox, runs = site
    where, index = here.room / "new", here.room / "index"
    await here.history.fill(here.base, where, index)
    (where / "judge.sh").write_text('grep -q "$1" "$MIMIR_ANSWER"\n')
    tree = (await here.history.snapshot(where, index, base=here.base)).tree

    greens = [
        (await runs.run(check("hold", "! sh judge.sh no"), tree, "after", answer=answer)).green
        for answer in ("", "one", "no")
    ]

    assert greens == [True, True, False]
    assert len(sandbox.commands) == 3


async def test_red_run_is_executed_again(site):
    here, sandbox, runs = site

    for again in (False, True, False):
        run = await runs.run(check("hold", "false"), here.base, "merged", again=again)
        assert not run.shared

    assert len(sandbox.commands) == 3


async def test_repeated_run_is_executed_although_its_result_is_known(site):
    here, sandbox, runs = site

    await runs.run(check("hold", "true"), here.base, "after")
    await runs.run(check("hold", "true"), here.base, "after", again=True)

    assert len(sandbox.commands) == 2


async def test_the_environment_does_not_show_that_a_run_is_a_control(site):
    here, sandbox, runs = site
    suite = check("hold", "python -m pytest -q")
    after = await runs.run(suite, here.base, "after")
    usual = sandbox.environment
    case = ControlCase(
        check=suite, kind="hold", before=after, after=after, base_tree=here.base, changed=()
    )

    await runs.control(case)

    assert len(sandbox.commands) > 1
    assert sandbox.environment == usual


async def test_control_on_a_common_tree_is_shared_by_equal_commands(site):
    here, sandbox, runs = site
    where, index = here.room / "new", here.room / "index"
    await here.history.fill(here.base, where, index)
    (where / "test_a.py").write_text("def test_a():\n    assert 1 == 1\n")
    tree = (await here.history.snapshot(where, index, base=here.base)).tree

    for suite in (
        check("hold", "python -m pytest -q test_a.py"),
        check("flip", "python -m pytest -q test_a.py"),
    ):
        after = await runs.run(suite, tree, "gate")
        case = ControlCase(check=suite, kind="hold", before=after, after=after, base_tree=here.base, changed=("test_a.py",))  # fmt: skip
        control = await runs.control(case)
        assert control.control.state == "red"
        assert (control.shared, len(sandbox.commands)) == (suite.kind == "flip", 2)


async def test_a_control_reads_older_tests_on_the_base_without_the_new_ones(site):
    """A new test that cannot be loaded before the work hides a comparison that never decided."""
    here, _, runs = site
    where, index = here.room / "new", here.room / "index"
    await here.history.fill(here.base, where, index)

    async def tree(files: Mapping[str, str]) -> str:
        for path, text in files.items():
            (where / path).write_text(text)
        return (await here.history.snapshot(where, index, base=here.base)).tree

    old = "from work import Name\n\n\ndef test_old():\n    assert Name('b') > Name('a')\n"
    name = "class Name(str):\n    def __gt__(self, other):\n        return str(self) > str(other)\n"
    lenient = await tree({"work.py": name, "tests/test_old.py": old})
    new = "from work import count\n\n\ndef test_new():\n    assert count() == 3\n"
    base = await tree({"tests/test_new.py": new})
    work = await tree({"work.py": f"{name}\n\ndef count():\n    return 3\n"})
    suite = check("hold", "python -m pytest -q")
    case = ControlCase(
        check=suite,
        kind="hold",
        before=await runs.run(suite, base, "before"),
        after=await runs.run(suite, work, "after"),
        base_tree=base,
        changed=("work.py",),
        new_tests=PendingTests(paths=("tests/test_new.py",), base=lenient),
    )

    assert (await runs.control(case)).control.state == "red"
    # Without them, no sign separates the comparison from one that the work deceives.
    unknown = replace(case, new_tests=NO_PENDING_TESTS)
    assert (await runs.control(unknown)).control.state == "insensitive"
    green = replace(unknown, before=await runs.run(suite, lenient, "before"))
    assert (await runs.control(green)).control.state == "red"
