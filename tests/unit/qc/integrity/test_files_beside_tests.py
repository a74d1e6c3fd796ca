"""New files among tests that make the old ones pass: modules that stand in for the work, tests that mend it while they are loaded."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.clock import FrozenClock
from tests.support.fake_check_site import check as unit
from tests.support.fake_trees import GREEN, RED, FakeRan, Seen
from tests.support.projects import write_files
from tests.support.sandboxed_checks import PYTEST, Bench, check, opened

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return 7\n"
TEST = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
CASE = (
    "import unittest\n\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
    "    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
)
SCRIPT = "import sys\n\nsys.path.append('.')\nfrom calc import add\n\nassert add(1, 2) == 3\n"
ONE = (*PYTEST, "tests/test_calc.py")
MENDS = {
    "tests/test_aaa.py": "import calc\n\nif hasattr(calc, 'add'):\n    calc.add = lambda a, b: a + b\n\n\ndef test_more():\n    pass\n"
}


def making(*command: str) -> dict[str, str]:
    return {"Makefile": f"test:\n\t{' '.join(command)}\n"}


@pytest.fixture
async def site(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


async def begin(site: Bench, files: Mapping[str, str], calc: str = "") -> None:
    write_files(site.project, {"calc.py": calc, "tests/test_calc.py": TEST, **files})
    site.base = await site.history.tree((await site.history.base("run-2")).commit)


def of_kinds(ways: Mapping[str, tuple[object, ...]], held: str):
    """Return each way with a check that is to flip, and one of them with a check that is to hold."""
    flips = [pytest.param(*way, "flip", id=name) for name, way in ways.items()]
    return [*flips, pytest.param(*ways[held], "hold", id=f"{held}, held")]


STAND_INS = {
    "a test": (ONE, {}, "tests/calc.py"),
    "a package": (ONE, {}, "tests/calc/__init__.py"),
    "a test below make": (("make", "test"), making(*ONE), "tests/calc.py"),
    "a script": (("python3", "tests/check.py"), {"tests/check.py": SCRIPT}, "tests/calc.py"),
    "another place": (
        (*PYTEST, "spec/test_calc.py"),
        {"spec/test_calc.py": TEST},
        "spec/calc.py",
    ),
}


@pytest.mark.parametrize(("run", "there", "path", "kind"), of_kinds(STAND_INS, "a test"))
async def test_a_module_beside_the_tests_does_not_stand_in_for_the_work(
    site: Bench, run: tuple[str, ...], there: Mapping[str, str], path: str, kind: str
):
    await begin(site, there, RIGHT if kind == "hold" else "")

    hidden = await site.outcome(check(kind, run), {"calc.py": WRONG, path: RIGHT})
    good = await site.outcome(check(kind, run), {"calc.py": RIGHT + "# done\n", path: RIGHT})

    assert (hidden.state, good.state) == ("failed", "passed")
    assert any(path in finding for finding in hidden.findings)


@pytest.mark.parametrize("run", [ONE, ("make", "test")], ids=["pytest", "make"])
@pytest.mark.parametrize(
    "there",
    [{}, {"app/__init__.py": "", "app/helpers.py": "WANTED = 4\n"}],
    ids=["none", "package"],
)
async def test_a_helper_that_is_nobody_elses_may_be_what_a_test_waits_for(
    site: Bench, run: tuple[str, ...], there: Mapping[str, str]
):
    """A module of a package has another name."""
    waits = "from helpers import WANTED\n\nfrom calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == WANTED\n"
    await begin(site, {"tests/test_calc.py": waits, **making(*ONE), **there})
    work = {"calc.py": RIGHT, "tests/helpers.py": "WANTED = 3\n"}

    outcome = await site.outcome(check("flip", run), work)

    assert outcome.state == "passed"


async def test_a_module_beside_the_tests_that_was_asked_for_is_the_work(site: Bench):
    await begin(site, {})
    work = {"tests/calc.py": RIGHT}

    asked = await site.outcome(check("flip", ONE), work, files=("tests/calc.py",))

    assert asked.state == "passed"


MENDED = {
    "pytest": ((*PYTEST, "tests"), {}),
    "pytest, told nothing": (PYTEST, {}),
    "below make": (("make", "test"), making(*PYTEST, "tests")),
    "unittest": (
        ("python3", "-m", "unittest", "discover", "-s", "tests"),
        {"tests/test_case.py": CASE, "tests/test_calc.py": ""},
    ),
}


@pytest.mark.parametrize(("run", "there", "kind"), of_kinds(MENDED, "pytest"))
async def test_a_new_test_does_not_mend_the_work_for_others(
    site: Bench, run: tuple[str, ...], there: Mapping[str, str], kind: str
):
    await begin(site, there, RIGHT if kind == "hold" else "")

    hidden = await site.outcome(check(kind, run), {"calc.py": WRONG, **MENDS})
    good = await site.outcome(check(kind, run), {"calc.py": RIGHT + "# done\n", **MENDS})

    assert (hidden.state, good.state) == ("failed", "passed")
    assert any("together with the new ones" in finding for finding in hidden.findings)


def like_go(seen: Seen) -> FakeRan:
    """Fail unless the work is good, or a file of tests mends it."""
    work = seen.files["a.go"]
    mends = any("init" in text for path, text in seen.files.items() if path.endswith("_test.go"))
    return GREEN if work == "good" or (work and mends) else RED


@pytest.mark.parametrize(("work", "state"), [("good", "passed"), ("bad", "failed")])
async def test_what_a_new_file_of_tests_does_to_its_package_counts_in_any_language(
    bench, work: str, state: str
):
    base = {"a.go": "", "a_test.go": "wants good"}
    after = {**base, "a.go": work, "z_test.go": "func init()"}
    go = unit("flip", run=("go", "test", "./..."))

    assert (await bench(like_go).outcome(go, base, after)).state == state


async def test_tests_that_were_renamed_as_asked_are_not_left_out(bench):
    """Nothing would be left to run."""
    base, new = {"a.py": "bad", "tests/test_a.py": "wants good"}, "tests/test_b.py"
    tests = unit("flip", run=("pytest", "-q", "tests"))
    asked = ("a.py", "tests/test_a.py", new)

    outcome = await bench().outcome(tests, base, {"a.py": "good", new: "wants good"}, files=asked)

    assert outcome.state == "passed"


async def test_new_tests_beside_old_ones_cost_one_run_more(bench):
    here = bench()
    tests = unit("flip", run=("pytest", "-q", "tests"))
    base = {"a.py": "bad", "tests/test_a.py": "wants good"}
    after = {**base, "a.py": "good"}

    assert (await here.outcome(tests, base, after)).state == "passed"
    alone = len(here.sandbox.seen)
    more = {**after, "tests/test_b.py": "wants good"}
    assert (await here.outcome(tests, base, more)).state == "passed"

    # Before the work once more too, with the new test.
    assert len(here.sandbox.seen) - alone == alone + 1
    assert "tests/test_b.py" not in here.sandbox.seen[-1].files
