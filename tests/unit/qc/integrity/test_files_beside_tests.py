"""New files among tests that make the old ones pass: modules that replace the work, tests that patch it on import."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.clock import FrozenClock
from tests.support.fake_check_site import check as unit
from tests.support.fake_trees import GREEN, RED, FakeRan, Seen
from tests.support.projects import write_files
from tests.support.sandboxed_checks import PYTEST, Bench, check, opened
from tests.support.scoped_deliverables import find_left_out

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return 7\n"
TEST = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
SCRIPT = "import sys\n\nsys.path.append('.')\nfrom calc import add\n\nassert add(1, 2) == 3\n"
ONE = (*PYTEST, "tests/test_calc.py")
PATCHES = {
    "tests/test_aaa.py": "import calc\n\nif hasattr(calc, 'add'):\n    calc.add = lambda a, b: a + b\n\n\ndef test_more():\n    pass\n"
}


def making(*command: str) -> dict[str, str]:
    return {"Makefile": f"test:\n\t{' '.join(command)}\n"}


@pytest.fixture
async def site(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


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
BASE = {"calc.py": "", "tests/test_calc.py": TEST}
HELPED = "from helpers import WANTED\n\nfrom calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == WANTED\n"
HELPER = {"tests/helpers.py": "WANTED = 3\n"}
PACKAGE = {"app/__init__.py": "", "app/helpers.py": "WANTED = 4\n"}


@pytest.mark.parametrize(("run", "there", "path"), STAND_INS.values(), ids=STAND_INS.keys())
async def test_a_module_beside_the_tests_is_no_part_of_the_work_unless_the_task_names_it(
    run: tuple[str, ...], there: Mapping[str, str], path: str
):
    base, work = {**BASE, **there}, {"calc.py": WRONG, path: RIGHT}

    assert await find_left_out(check("flip", run), base, work) == {path}
    assert await find_left_out(check("flip", run), base, work, files=tuple(work)) == set()


@pytest.mark.parametrize("run", [ONE, ("make", "test")], ids=["pytest", "make"])
@pytest.mark.parametrize("there", [{}, PACKAGE], ids=["none", "package"])
async def test_helper_used_by_no_other_test_is_part_of_the_work(
    run: tuple[str, ...], there: Mapping[str, str]
):
    """A module of a package has another name."""
    base = {**BASE, "tests/test_calc.py": HELPED, **making(*ONE), **there}

    assert await find_left_out(check("flip", run), base, {"calc.py": RIGHT, **HELPER}) == set()


async def test_new_test_does_not_repair_the_work_for_other_tests(site: Bench):
    write_files(site.project, {**BASE, **making(*PYTEST, "tests")})
    site.base = await site.history.tree((await site.history.base("run-2")).commit)
    run = check("flip", ("make", "test"))

    hidden = await site.outcome(run, {"calc.py": WRONG, **PATCHES})
    good = await site.outcome(run, {"calc.py": RIGHT + "# done\n", **PATCHES})

    assert (hidden.state, good.state) == ("failed", "passed")
    assert any("together with the new ones" in finding for finding in hidden.findings)


def passes_if_patched(seen: Seen) -> FakeRan:
    """Pass if the work is good, or exists and a new test patches it."""
    work = seen.files["a.py"]
    return GREEN if work == "good" or (work and "tests/test_aaa.py" in seen.files) else RED


@pytest.mark.parametrize("kind", ["flip", "hold"])
@pytest.mark.parametrize(
    "run",
    [
        (*PYTEST, "tests"),
        PYTEST,
        ("make", "test"),
        ("python3", "-m", "unittest", "discover", "-s", "tests"),
    ],
    ids=["pytest", "pytest, told nothing", "make", "unittest"],
)
async def test_a_new_test_is_left_out_of_one_more_run(bench, run: tuple[str, ...], kind: str):
    base = {"a.py": "good" if kind == "hold" else "", "tests/test_a.py": ""}
    here, one = bench(passes_if_patched), unit(kind, run=run)

    hidden = await here.outcome(one, base, {**base, "a.py": "bad", "tests/test_aaa.py": "mends"})

    assert hidden.state == "failed"
    assert "tests/test_aaa.py" not in here.sandbox.seen[-1].files


def like_go(seen: Seen) -> FakeRan:
    """Fail unless the work is good, or a file of tests patches it."""
    work = seen.files["a.go"]
    mends = any("init" in text for path, text in seen.files.items() if path.endswith("_test.go"))
    return GREEN if work == "good" or (work and mends) else RED


@pytest.mark.parametrize(("work", "state"), [("good", "passed"), ("bad", "failed")])
async def test_effect_of_a_new_test_file_on_its_package_counts_in_any_language(
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


CASES = (
    "import json\nfrom pathlib import Path\n\nfrom calc import add\n\n\ndef test_cases():\n"
    "    paths = sorted(Path(__file__).parent.glob('cases/*.json'))\n    cases = dict(json.loads(path.read_text()) for path in paths)\n"
    "    assert [add(2, 3) for name in cases] == list(cases.values())\n"
)


async def test_new_data_replaces_no_data_of_older_tests_unless_the_task_names_it(site: Bench):
    write_files(
        site.project,
        {"calc.py": "", "tests/test_calc.py": CASES, "tests/cases/a.json": '["sum", 5]\n'},
    )
    site.base = await site.history.tree((await site.history.base("run-2")).commit)
    run, new = check("flip", ONE), "tests/cases/b.json"

    hidden = await site.outcome(run, {"calc.py": WRONG, new: '["sum", 7]\n'})
    good = await site.outcome(run, {"calc.py": RIGHT, new: '["other", 5]\n'})

    assert (hidden.state, good.state) == ("failed", "passed")
    assert any("new data beside them" in finding for finding in hidden.findings)
    named = await site.outcome(run, {"calc.py": WRONG, new: '["sum", 7]\n'}, files=("calc.py", new))
    assert named.state == "passed"


async def test_an_older_test_that_the_task_extends_may_read_new_data(site: Bench):
    older = "from calc import add\n\n\ndef test_adds():\n    assert add(2, 3) == 5\n"
    write_files(site.project, {"calc.py": RIGHT, "tests/test_calc.py": older})
    site.base = await site.history.tree((await site.history.base("run-2")).commit)
    both = f"{RIGHT}\n\ndef read(path):\n    return path.read_text()\n"
    reads = "\n\ndef test_reads():\n    from pathlib import Path\n\n    from calc import read\n\n    assert read(Path(__file__).parent / 'cases/a.txt') == '5'\n"
    work = {"calc.py": both, "tests/test_calc.py": older + reads, "tests/cases/a.txt": "5"}

    outcome = await site.outcome(
        check("flip", ONE), work, files=("calc.py", "tests/test_calc.py", "tests/cases/**")
    )

    assert outcome.state == "passed", outcome.findings
