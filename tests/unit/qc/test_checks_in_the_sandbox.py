"""A few rows of the table with real git trees, the real sandbox and real pytest."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Check, Task
from mimir.qc import seal
from mimir.qc.bodies import check_bodies
from mimir.qc.checks import Checks
from mimir.qc.execution import Execution
from mimir.workspace.git import History
from mimir.workspace.sandbox import Sandbox, SandboxConfig
from tests.support.clock import FrozenClock
from tests.support.projects import make_project, write_files

CALC = "def add(a, b):\n    return a + b\n"
MUL = CALC + "\n\ndef mul(a, b):\n    return a * b\n"
TEST_MUL = "from calc import mul\n\n\ndef test_multiplies():\n    assert mul(2, 3) == 6\n"
TEST_NOTHING = "def test_multiplies():\n    assert True\n"
PYTEST = ("python", "-m", "pytest", "-q")


@dataclass
class Bench:
    project: Path
    history: History
    checks: Checks
    room: Path
    base: str

    async def outcome(
        self, check: Check, changes: Mapping[str, str | None], answer: str = "Done."
    ) -> CheckOutcome:
        where = self.room / "deliverable"
        index = self.room / "index"
        await self.history.fill(self.base, where, index)
        write_files(where, {path: text for path, text in changes.items() if text is not None})
        for path, text in changes.items():
            if text is None:
                (where / path).unlink()
        taken = await self.history.snapshot(where, index, base=self.base)
        task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(check,))
        changed = [change.path for change in await self.history.changed(self.base, taken.tree)]
        outcomes = await self.checks.outcomes(
            task, base_tree=self.base, tree=taken.tree, changed=changed, answer=answer
        )
        return outcomes[0]


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    project = make_project(tmp_path / "project")
    sandbox = Sandbox(SandboxConfig(), scratch=tmp_path / "scratch", clock=frozen_clock)
    history = await History.open(
        project, tmp_path / "history.git", owner=sandbox.owner, home=tmp_path
    )
    base = await history.tree((await history.base("run-1")).commit)
    room = tmp_path / "room"
    room.mkdir()
    execution = Execution(
        history=history, sandbox=sandbox.bound(project=project), room=room / "checks"
    )
    return Bench(project, history, Checks(history, execution), room, base)


def check(kind: str | None, run: tuple[str, ...] | str, **more: object) -> Check:
    return Check(id="unit", criteria=("c1",), run=run, kind=kind, timeout_seconds=30, **more)


async def test_new_function_with_its_own_test_flips_and_is_marked(bench: Bench):
    outcome = await bench.outcome(
        check("flip", (*PYTEST, "tests/test_mul.py")),
        {"calc.py": MUL, "tests/test_mul.py": TEST_MUL},
    )

    assert (outcome.state, outcome.self_authored) == ("passed", True)
    assert (outcome.before.exit_code, outcome.after.exit_code) == (2, 0)
    assert "1 passed" in outcome.after.output_tail
    assert outcome.after.sandbox == "bubblewrap"
    assert str(bench.room) not in outcome.after.output_tail + outcome.before.output_tail
    records = seal.extend("r/t/1", None, [("check", body) for body in check_bodies(outcome)])
    assert seal.verify("r/t/1", records) == ()
    assert list((bench.room / "checks").iterdir()) == []


async def test_test_that_cannot_fail_proves_nothing(bench: Bench):
    outcome = await bench.outcome(
        check("flip", (*PYTEST, "tests/test_mul.py")), {"tests/test_mul.py": TEST_NOTHING}
    )

    assert outcome.state == "unverified"


async def test_regression_turns_a_hold_red_also_when_its_test_is_deleted(bench: Bench):
    broken = CALC.replace("a + b", "a - b")

    outcome = await bench.outcome(
        check("hold", PYTEST),
        {"calc.py": broken, "tests/test_calc.py": None, "tests/test_mul.py": TEST_NOTHING},
    )

    assert outcome.state == "failed"
    assert outcome.again is not None
    assert "test_adds_two_numbers" in outcome.after.output_tail


async def test_planted_hook_does_not_make_a_flip_pass(bench: Bench):
    hook = "import os\n\n\ndef pytest_sessionfinish():\n    os._exit(0)\n"

    outcome = await bench.outcome(
        check("flip", (*PYTEST, "tests/test_mul.py")),
        {"tests/test_mul.py": TEST_MUL, "conftest.py": hook},
    )

    assert (outcome.state, outcome.before.cut_short) == ("failed", True)


@pytest.mark.parametrize("runner", ["pytest -q", "pytest", "pytest -qq", "unittest", "unittest -q"])
@pytest.mark.parametrize("kind", ["flip", "hold", None])
async def test_work_that_ends_the_process_of_its_tests_passes_none(
    bench: Bench, runner: str, kind: str | None
):
    """Exit code 0 is left behind, and no test has spoken: `sys.exit()` in a module is enough for unittest."""
    test = f"import unittest\n{TEST_MUL}\n\nclass T(unittest.TestCase):\n    test = staticmethod(test_multiplies)\n"
    leaves = "import os\nos._exit(0)\n" if "pytest" in runner else "import sys\nsys.exit()\n"
    what = "tests/test_mul.py" if "pytest" in runner else "tests.test_mul"
    run = ("python", "-m", *runner.split(), what)

    wrong = await bench.outcome(
        check(kind, run), {"calc.py": leaves + MUL, "tests/test_mul.py": test}
    )
    right = await bench.outcome(check(kind, run), {"calc.py": MUL, "tests/test_mul.py": test})

    assert (wrong.state, wrong.after.exit_code, wrong.after.cut_short) == ("failed", 0, True)
    assert any("came to its end" in finding for finding in wrong.findings)
    assert (right.state, right.after.cut_short) == ("passed", False)


async def test_protected_test_is_run_as_it_was(bench: Bench):
    outcome = await bench.outcome(
        check("hold", (*PYTEST, "tests/test_calc.py"), protect=("tests/test_calc.py",)),
        {"calc.py": "def add(a, b):\n    return 0\n", "tests/test_calc.py": TEST_NOTHING},
    )

    assert (outcome.state, outcome.self_authored) == ("failed", False)


async def test_program_that_is_not_on_the_machine_is_unverified(bench: Bench):
    outcome = await bench.outcome(check("flip", "no-such-program --now"), {"calc.py": MUL})

    assert (outcome.state, outcome.before.missing, outcome.after.missing) == (
        "unverified",
        True,
        True,
    )


async def test_check_that_never_ends_is_ended_and_fails(bench: Bench):
    slow = Check(
        id="unit",
        criteria=("c1",),
        run="grep -q mul calc.py && sleep 60 || true",
        kind="hold",
        timeout_seconds=1,
    )

    outcome = await bench.outcome(slow, {"calc.py": MUL})

    assert (outcome.state, outcome.after.timed_out) == ("failed", True)


async def test_closing_answer_is_a_read_only_file_for_the_check(bench: Bench):
    reads = 'grep -q "limit is ten" "$MIMIR_ANSWER" && ! echo more >> "$MIMIR_ANSWER"'

    outcome = await bench.outcome(check("flip", reads), {}, answer="The limit is ten.")

    assert (outcome.before.exit_code, outcome.state) == (1, "passed")
