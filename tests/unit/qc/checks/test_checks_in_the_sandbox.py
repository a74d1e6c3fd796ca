"""A few rows of the table with real git trees, the real sandbox and real pytest."""

import hashlib
import json
from pathlib import Path

import pytest

from mimir.domain.plan import Check
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import check_bodies
from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import PYTEST, Bench, check, opened

CALC = "def add(a, b):\n    return a + b\n"
MUL = CALC + "\n\ndef mul(a, b):\n    return a * b\n"
TEST_MUL = "from calc import mul\n\n\ndef test_multiplies():\n    assert mul(2, 3) == 6\n"


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


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


async def test_a_task_that_may_only_write_tests_proves_them(bench: Bench):
    """They pass on the old work too: there is no other work."""
    new = "from calc import add\n\n\ndef test_adds():\n    assert add(2, 3) == 5\n"
    path = "tests/test_new.py"
    run, lists = [check("flip", (*PYTEST, *more, path)) for more in ((), ("--collect-only",))]
    code = {"calc.py": MUL}

    for command, files, work, state in (
        (run, (path,), {}, "passed"),
        (run, (path, "calc.py"), {}, "unverified"),
        (run, (), {}, "unverified"),
        (lists, (), {}, "passed"),
        (lists, (), code, "unverified"),
    ):
        outcome = await bench.outcome(command, {path: new, **work}, files=files)
        assert outcome.state == state
        assert ("`Files`" in "".join(outcome.findings)) == (state == "unverified")


async def test_threshold_that_new_code_misses_without_its_tests_refuses_no_work(bench: Bench):
    """As `--cov-fail-under` in the settings: only the exit code shows it, no test."""
    hook = "import calc\n\n\ndef pytest_sessionfinish(session):\n    if session.testscollected < str(vars(calc)).count('<function'):\n"
    write_files(bench.project, {"conftest.py": f"{hook}        session.exitstatus = 1\n"})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    right = "def add(a, b):\n    return a + b\n"
    for add, state in ((right, "passed"), ("def add(a, b):\n    return a\n", "failed")):
        work = {"calc.py": MUL.replace(right, add), "tests/test_mul.py": TEST_MUL}
        outcome = await bench.outcome(check("hold", (*PYTEST, "tests")), work)
        assert outcome.state == state


async def test_an_old_red_test_rejects_no_work_that_adds_green_ones(bench: Bench):
    write_files(bench.project, {"tests/test_old.py": "def test_old():\n    assert False\n"})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    for test, state in ((TEST_MUL, "broken"), (TEST_MUL.replace("6", "7"), "unverified")):
        work = {"calc.py": MUL, "tests/test_mul.py": test}
        assert (await bench.outcome(check("hold", (*PYTEST, "tests")), work)).state == state
        unknown = check("hold", (*PYTEST, "--no-such-option"))
        assert (await bench.outcome(unknown, work)).state == "broken"


@pytest.mark.parametrize("skips", [False, True])
async def test_new_tests_that_the_command_selects_by_name_are_enough(bench: Bench, skips: bool):
    """There are older tests, none of which has that name: alone they do not decide."""
    if skips:
        # As `jest -t NAME` reports the others.
        skipped = "import pytest\n\n\ndef test_multiplies_later():\n    pytest.skip('later')\n"
        write_files(bench.project, {"tests/test_later.py": skipped})
        bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)

    run = (*PYTEST, "-k", "multiplies")
    work = {
        "calc.py": MUL,
        "tests/test_mul.py": f"import pytest\n\npytestmark = pytest.mark.slow\n{TEST_MUL}",
        "pytest.ini": "[pytest]\nmarkers = slow: takes long\n",
    }
    # Without the work, the last two commands end before any test.
    unknown = (*PYTEST, "--strict-markers", "-m", "slow")
    for command in (run, ("sh", "-c", f"test -f pytest.ini && {' '.join(run)}"), unknown):
        outcome = await bench.outcome(check("flip", command), work, files=tuple(work))

        assert (outcome.state, outcome.self_authored) == ("passed", True)


@pytest.mark.parametrize(
    ("runner", "kind"),
    [("pytest -qq", None), ("unittest", "flip"), ("unittest -q", "hold")],
)
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

    assert (wrong.state, wrong.after.exit_code) == ("failed", 0)
    assert any("its tests decide" in finding for finding in wrong.findings)


@pytest.mark.parametrize("place", ["the command", "a script"])
async def test_git_in_a_check_shows_the_changes_of_the_check(bench: Bench, place: str):
    """As in continuous integration: a command makes files again, which must equal the stored ones."""
    line = (
        'python calc.py > table.txt && git diff --exit-code && test -z "$(git status --porcelain)"'
    )
    table = CALC + "\n\nprint(add(1, 1))\n"
    write_files(
        bench.project, {"calc.py": table, "table.txt": "2\n", "check.sh": f"set -e\n{line}\n"}
    )
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    run = line if place == "the command" else ("bash", "check.sh")
    more = table + "print(add(1, 2))\n"

    right = await bench.outcome(check("hold", run), {"calc.py": more, "table.txt": "2\n3\n"})
    wrong = await bench.outcome(check("hold", run), {"calc.py": more})

    assert (right.state, wrong.state) == ("passed", "failed")
    assert "+3" in wrong.after.output_tail


ONE_OF_TWO = "--deselect=tests/test_calc.py::test_adds_two_numbers"
MORE = "\n\ndef test_adds_nothing():\n    assert add(1, 0) == 1\n"
WAYS_ROUND = {
    "pytest.ini": f"[pytest]\naddopts = {ONE_OF_TWO}\n",
    ".pytest.ini": f"[pytest]\naddopts = {ONE_OF_TWO}\n",
    "tests/pytest.ini": f"[pytest]\naddopts = {ONE_OF_TWO.replace('tests/', '')}\n",
    "tox.ini": f"[pytest]\naddopts = {ONE_OF_TWO}\n",
    "setup.cfg": f"[tool:pytest]\naddopts = {ONE_OF_TWO}\n",
    "pyproject.toml": f"[tool.pytest.ini_options]\naddopts = {ONE_OF_TWO!r}\n",
    "conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n",
    "tests/conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n",
}


async def test_tests_that_were_there_are_not_left_out_by_new_settings(bench: Bench):
    """Of two tests the failing one is left out: the rest holds."""
    test = bench.project / "tests/test_calc.py"
    right, asked = "def add(a, b):\n    return a + b\n", test.read_text() + MORE
    write_files(bench.project, {"calc.py": right, "tests/test_calc.py": asked})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    run = check("hold", (*PYTEST, "tests"))
    wrong = "def add(a, b):\n    return a\n"

    hidden = await bench.outcome(run, {"calc.py": wrong, **WAYS_ROUND})
    good = await bench.outcome(run, {"calc.py": right + "# done\n", **WAYS_ROUND})

    assert hidden.state == "failed"
    said = "\n".join(hidden.findings)
    assert [name for name in WAYS_ROUND if f"{name!r} is not in the deliverable" not in said] == []
    assert good.state == "passed"


async def test_settings_and_fixtures_that_a_task_names_are_the_work(bench: Bench):
    """There are tests already; the new one needs a fixture and a marker that came with it."""
    work = {
        "calc.py": MUL,
        "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n",
        "pytest.ini": "[pytest]\naddopts = --strict-markers\nmarkers =\n    quick: soon done\n",
        "tests/test_mul.py": (
            "import pytest\nfrom calc import mul\n\n\n@pytest.mark.quick\n"
            "def test_multiplies(three):\n    assert mul(2, three) == 6\n"
        ),
    }

    outcome = await bench.outcome(check("flip", PYTEST), work, files=tuple(work))

    assert (outcome.state, outcome.self_authored) == ("passed", True)


async def test_check_whose_program_is_not_on_the_machine_is_broken(bench: Bench):
    outcome = await bench.outcome(check("flip", "no-such-program --now"), {"calc.py": MUL})

    assert (outcome.state, outcome.before.missing, outcome.after.missing) == (
        "broken",
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


async def test_control_reaches_the_tests_behind_a_step_that_refuses_its_changes(bench: Bench):
    tests = sorted((bench.project / "tests").glob("test_*.py"))
    digests = "|".join(hashlib.md5(one.read_bytes()).hexdigest() for one in tests)
    lint = f"md5sum tests/test_*.py | grep -cE '{digests}' | grep -qx {len(tests)}"
    run = "python -m pytest -q"
    files = {
        "Makefile": f"check:\n\t{lint}\n\t{run}\n",
        "ci.sh": f"set -e\n{lint}\n{run}\n",
        "package.json": json.dumps({"scripts": {"pretest": lint, "test": f"{lint} && {run}"}}),
    }
    write_files(bench.project, files)
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)

    for command in (("make", "check"), ("sh", "ci.sh"), ("npm", "test"), f"{lint} && {run}"):
        hold = check("hold", command)
        outcome = await bench.outcome(hold, {"calc.py": MUL})
        case = ControlCase(
            check=hold, kind="hold", before=outcome.before, after=outcome.after,
            base_tree=bench.base, changed=("calc.py",),
        )  # fmt: skip
        control = (await bench.checks.control(case)).control

        assert control is not None
        assert (control.state, control.sensitive, control.counted) == ("red", 1, 1), command
