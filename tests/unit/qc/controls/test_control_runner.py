"""Which variants decide a control, over a fake execution of scripts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.domain.test_results import TestResults
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.controls.control_runner import run_control
from mimir.qc.controls.decision import has_fewer
from mimir.qc.controls.variants import Alter, Variants
from mimir.qc.mutations.test_outlines import count_parameters, list_plain, outline_tests
from mimir.qc.scope.test_owners import PendingTests
from tests.support.projects import write_files

FILES = {
    "work.py": "X = 1\n",
    "check.sh": "set -e\npython tests/case\n",
    "tests/case": "import work\n\nassert work.X == 1\n",
}
COMMANDS = {"a script": ("sh", "check.sh"), "a line": ("sh", "-c", "python tests/case")}


def ran(exit_code: int, tree: str = "work") -> CheckRun:
    return CheckRun(
        check="unit", argv=("sh",), phase="after", tree=tree, exit_code=exit_code, output_hash="0"
    )


async def control(
    run: Sequence[str], where: Path, *, is_started: bool, is_asserted: bool = True
) -> str:
    """Control a check.

    `is_started`: its test is executed, and not another program in its place. `is_asserted`: its assertion is reached.
    """
    check = Check(id="unit", criteria=("c1",), run=tuple(run), kind="flip")

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(where, FILES)
        if alter(where) is None:
            return None
        case = (where / "tests/case").read_text()
        has_test_failed = "SystemExit" in case or (is_asserted and case != FILES["tests/case"])
        is_red = (is_started and has_test_failed) or "exit 1" in (where / "check.sh").read_text()
        return ran(int(is_red), tree)

    case = ControlCase(
        check=check,
        kind="flip",
        before=ran(1),
        after=ran(0),
        base_tree="base",
        changed=("work.py",),
    )
    found = (await run_control(case, execute)).control
    return found.state if found else ""


PAIR = "def test_old():\n    assert lines() == 7\n\n\ndef test_new():\n    assert lines() == 9\n"


@pytest.mark.parametrize(
    ("on_base", "written", "state"),
    [
        (("test_old",), "work.py", "red"),
        (("test_old",), "tests/test_pair.py", "insensitive"),
        ((), "work.py", "insensitive"),
        (("test_old", "test_new"), "work.py", "insensitive"),
    ],
    ids=["old test passed", "old test was rewritten", "nothing passed", "no test is new"],
)
async def test_tests_of_the_base_do_not_flip_when_new_ones_hide_their_results(
    on_base: Sequence[str], written: str, state: str, tmp_path: Path
):
    """The expected value of the old test decides nothing; before the work nothing was compiled."""

    def results(*passed: str) -> TestResults:
        names = [f"tests/test_pair.py::{name}" for name in ("test_old", "test_new")]
        green = tuple(name for name in names if name.endswith(passed)) if passed else ()
        red = tuple(name for name in names if name not in green)
        return TestResults(runner="pytest", passed=green, failed=red)

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(tmp_path, {"tests/test_pair.py": PAIR})
        if alter(tmp_path) is None:
            return None
        text = (tmp_path / "tests/test_pair.py").read_text()
        if text == PAIR:
            return replace(ran(0, tree), results=results(*on_base))
        # Only a failing statement is noticed by the old test.
        passed = () if "AssertionError" in text else ("test_old",)
        return replace(ran(1, tree), results=results(*passed))

    case = ControlCase(
        check=Check(id="unit", criteria=("c1",), run=("pytest",), kind="flip"),
        kind="flip",
        before=replace(ran(2), results=TestResults(runner="pytest", problem="no report")),
        after=replace(ran(0), results=results("test_old", "test_new")),
        base_tree="base",
        changed=(written,),
    )
    found = (await run_control(case, execute)).control
    assert found is not None
    assert found.state == state


@pytest.mark.parametrize(
    ("on_base", "at_start", "state"),
    [
        ("skipped", "skipped", "red"),
        ("failed", "failed", "insensitive"),
        ("skipped", "failed", "insensitive"),
    ],
)
async def test_a_comparison_that_decided_nothing_before_the_work_is_no_fault_of_it(
    on_base: str, at_start: str, state: str, tmp_path: Path
):
    """The reporter counts a test as skipped if a comparison of it accepts another value.

    An earlier task of the run may have added a file that makes it accept others.
    """

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(tmp_path, {"tests/test_pair.py": PAIR})
        if alter(tmp_path) is None:
            return None
        is_value = "AssertionError" not in (tmp_path / "tests/test_pair.py").read_text()
        by_tree = {"base": on_base, "start": at_start, "work": "skipped"}
        lenient = by_tree[tree] if is_value else "failed"
        states = {"failed": ["tests/test_pair.py::test_new"], "skipped": list[str]()}
        states[lenient].append("tests/test_pair.py::test_old")
        results = TestResults(
            runner="pytest", failed=tuple(states["failed"]), skipped=tuple(states["skipped"])
        )
        return replace(ran(1, tree), results=results)

    green = TestResults(
        runner="pytest", passed=("tests/test_pair.py::test_old", "tests/test_pair.py::test_new")
    )
    case = ControlCase(
        check=Check(id="unit", criteria=("c1",), run=("pytest",), kind="hold"),
        kind="hold",
        before=replace(ran(0, "base"), results=green),
        after=replace(ran(0), results=green),
        base_tree="base",
        changed=("work.py",),
        new_tests=PendingTests(paths=(), base="start"),
    )
    found = (await run_control(case, execute)).control
    assert found is not None
    assert found.state == state


@pytest.mark.parametrize("run", COMMANDS.values(), ids=COMMANDS.keys())
async def test_a_check_that_does_not_notice_its_failing_test_is_insensitive(
    run: tuple[str, ...], tmp_path: Path
):
    """The work brings a program in the place of the interpreter; only the end of the caller is red."""
    assert await control(run, tmp_path, is_started=False) == "insensitive"
    assert await control(run, tmp_path, is_started=True) == "red"


@pytest.mark.parametrize("run", COMMANDS.values(), ids=COMMANDS.keys())
async def test_a_test_that_ends_without_its_assertion_is_insensitive(
    run: tuple[str, ...], tmp_path: Path
):
    """The test waits for an answer that the work never gives."""
    assert await control(run, tmp_path, is_started=True, is_asserted=False) == "insensitive"


async def test_tests_that_its_runner_does_not_collect_decide_nothing(tmp_path: Path):
    files = {"t/a.t": "is(f(), 1, 'a');\n", "t/test_b.py": "def test_b():\n    assert 1 == 1\n"}
    check = Check(id="unit", criteria=("c1",), run=("prove", "t/a.t"), kind="flip")

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(tmp_path, files)
        if alter(tmp_path) is None:
            return None
        return ran(int((tmp_path / "t/a.t").read_text() != files["t/a.t"]), tree)

    case = ControlCase(check=check, kind="flip", before=ran(1), after=ran(0), base_tree="base", changed=())  # fmt: skip

    assert (await run_control(case, execute)).control.state == "red"


@pytest.mark.parametrize("is_asserted", [True, False])
async def test_tests_that_start_without_reaching_an_assertion_prove_nothing(
    is_asserted: bool, tmp_path: Path
):
    """Isolated from its reporter, a runner gives an exit code alone; the work may end it early."""
    text = "def test_a():\n    assert work.X == 1\n"
    run = ("python", "-I", "-c", "import unittest; unittest.main('test_a')")
    check = Check(id="unit", criteria=("c1",), run=run, kind="flip")

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(tmp_path, {"test_a.py": text})
        if alter(tmp_path) is None:
            return None
        other = (tmp_path / "test_a.py").read_text()
        return ran(int("AssertionError" in other or (is_asserted and other != text)), tree)

    case = ControlCase(check=check, kind="flip", before=ran(1), after=ran(0), base_tree="base", changed=("work.py",))  # fmt: skip

    state = (await run_control(case, execute)).control.state
    assert state == ("red" if is_asserted else "insensitive")


async def test_a_check_that_only_lists_tests_proves_new_tests_and_no_other_work(tmp_path: Path):
    run = ("python", "-m", "pytest", "--collect-only", "-q", "tests/test_a.py")
    check = Check(id="unit", criteria=("c1",), run=run, kind="flip")

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(tmp_path, {"tests/test_a.py": "def test_a():\n    assert 1 == 1\n"})
        return ran(0, tree) if alter(tmp_path) is not None else None

    for changed, state in (("tests/test_a.py", "red"), ("work.py", "insensitive")):
        case = ControlCase(check=check, kind="flip", before=ran(4), after=ran(0), base_tree="base", changed=(changed,))  # fmt: skip
        assert (await run_control(case, execute)).control.state == state


HIDING = {
    "python": (
        "tests/test_pair.py",
        "from work import X\n\n\ndef test_old():\n    assert X == 7\n\n\ndef test_new():\n    assert X == 9\n",
    ),
    "go": (
        "pair_test.go",
        'package pair\n\nimport "testing"\n\nfunc TestOld(t *testing.T) {\n\tif X != 7 {\n\t\tt.Fatal(X)\n\t}\n}\n\nfunc TestNew(t *testing.T) {\n}\n',
    ),
    "javascript": (
        "tests/pair.test.js",
        "const { X } = require('../work');\nconst { test } = require('node:test');\n\ntest('old', () => {\n  assert.equal(X, 7);\n});\n\ntest('new', () => {\n  assert.equal(X, 9);\n});\n",
    ),
    "java": (
        "src/test/java/PairTest.java",
        "import org.junit.Test;\nimport work.X;\n\npublic class PairTest {\n    @Test\n    public void old() {\n        assertEquals(7, X.x);\n    }\n\n    @Test\n    public void more() {\n        assertEquals(9, X.x);\n    }\n}\n",
    ),
}
"""Language → test file, and its text."""


@pytest.mark.parametrize("language", HIDING)
@pytest.mark.parametrize("is_selected", [True, False], ids=["hidden", "not selected"])
async def test_tests_that_run_only_without_the_work_make_a_check_insensitive(
    language: str, is_selected: bool, tmp_path: Path
):
    """Before the work no module could be loaded, so that no result lists the tests."""
    path, text = HIDING[language]
    prefix = {"go": "example.com/pair", "java": "PairTest"}.get(language, path)
    old, new = {
        "python": ("test_old", "test_new"),
        "go": ("TestOld", "TestNew"),
        "java": ("old", "more"),
    }.get(language, ("old", "new"))
    skipped = (f"{prefix}::{new}",) if language == "java" else ()
    green = TestResults(runner="any", passed=(f"{prefix}::{old}",), skipped=skipped)

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        write_files(tmp_path, {path: text})
        if alter(tmp_path) is None:
            return None
        is_loaded = "work" in (tmp_path / path).read_text() or (
            language == "go" and "X !=" in (tmp_path / path).read_text()
        )
        names = (old,) if is_loaded or not is_selected else (old, new)
        red = TestResults(runner="any", failed=tuple(f"{prefix}::{name}" for name in names))
        return replace(ran(1, tree), results=red)

    case = ControlCase(
        check=Check(id="unit", criteria=("c1",), run=("pytest",), kind="flip"),
        kind="flip",
        before=replace(ran(2), results=TestResults(runner="any", problem="no report")),
        after=replace(ran(0), results=green),
        base_tree="base",
        changed=("work.py",),
    )
    found = (await run_control(case, execute)).control
    assert found is not None
    assert found.state == ("insensitive" if is_selected else "red")


def test_a_test_in_a_group_that_is_skipped_is_not_plain():
    text = "describe('a', () => {\n  it('one', () => { f(); });\n});\ndescribe.skip('b', () => {\n  it('two', () => { f(); });\n});\ndescribe('c', { skip: true }, () => {\n  it('three', () => { f(); });\n});\n"  # fmt: skip

    assert list(list_plain(text, "js")) == ["one"]
    inner = "test('a', async (t) => {\n  await t.test('b', () => { f(); });\n  if (x) {\n    await t.test('c', () => { f(); });\n  }\n});\n"  # fmt: skip
    assert list(list_plain(inner, "js")) == ["a", "b"]
    example = "func ExampleAdd() {\n\tf()\n\t// Output: 5\n}\n\nfunc ExampleSub() {\n}\n"
    assert list(list_plain(example, "go")) == ["ExampleAdd"]
    assert list(list_plain("def test_a(): pass\n", "py")) == ["test_a"]
    assert list(list_plain("pytestmark = mark.slow\ndef test_a(): pass\n", "py")) == []


def test_an_outline_keeps_the_names_by_which_a_command_leaves_tests_out():
    text = "def test_a(x): pass\nclass TestB:\n    def test_b(self): pass\nclass C(Case):\n    def test_c(self): pass\n"
    head, *parts = outline_tests(text, "py", {"test_a", "test_b"}).split("\nclass ")

    assert head == 'import unittest\ndef test_a(): raise AssertionError("control")'
    assert parts[0] == 'TestB:\n    pass\n    def test_b(self): raise AssertionError("control")'
    assert parts[1] == "C(unittest.TestCase):\n    pass\n"


def test_a_test_with_fewer_parameters_than_its_text_names_is_hidden():
    text = "@pytest.mark.parametrize('n', [{}])\n@pytest.mark.parametrize('m', (1, 2))\ndef test_a(m, n): pass\n"
    (name, count), *_ = count_parameters(text.format("3, 4"))
    assert (name, count) == ("test_a", 4)
    for computed in ("*CASES", "pytest.param(3, marks=slow)", ""):
        assert not list(count_parameters(text.format(computed)))

    done = tuple(f"tests/test_a.py::test_a[{one}]" for one in ("1-3", "1-4", "2-3"))
    for run, is_fewer in (("pytest",), True), (("pytest", "-k", "3 or 1"), False):
        one = replace(ran(0), argv=run, results=TestResults(runner="pytest", passed=done))
        assert has_fewer(one, {("tests/test_a.py", "test_a"): 4}) is is_fewer
    assert not has_fewer(one, {("tests/test_a.py", "test_b"): 2})


async def test_a_variant_reaches_its_tests_on_each_tree(tmp_path: Path):
    """A linter before the tests refuses the variants of the base too."""
    started: list[str] = []

    async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        del seconds
        started.append(" ".join(alter(tmp_path) or ()))
        results = TestResults(runner="pytest", failed=("a::b",) if ";" in started[-1] else ())
        return replace(ran(1, tree), results=results)

    green = replace(ran(0), results=TestResults(runner="pytest", passed=("a::b",)))
    check = Check(id="unit", criteria=("c1",), run=green.argv, kind="hold")
    case = ControlCase(check=check, kind="hold", before=green, after=green, base_tree="base", changed=())  # fmt: skip
    for tree in ("work", "base"):
        run = await Variants(case, execute).run(lambda _: ("sh", "-c", "lint && pytest"), tree)

        assert run == replace(ran(1, tree), results=TestResults(runner="pytest", failed=("a::b",)))
    assert len(started) == 4
