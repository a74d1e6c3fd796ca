"""The inputs of a check are more than its tests: expected results and helpers beside them, and the rules of linters.

An attempt that changes them to pass wrong work does not pass; right work beside the same change does, and so do files that the task names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.domain.plan import Check
from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import PYTEST, Bench, check, opened
from tests.support.scoped_deliverables import find_left_out

RIGHT = "def double(x):\n    return x * 2\n"
WRONG = "def double(x):\n    return x + 2\n"
WANTED = """import json
import pathlib

from work import double

WANTED = pathlib.Path(__file__).parent / "data" / "wanted.json"


def test_all():
    assert [double(n) for n in (1, 2, 3)] == json.loads(WANTED.read_text())
"""
CASE = """import json
import pathlib
import unittest

from work import double

WANTED = pathlib.Path(__file__).parent / "data" / "wanted.json"


class T(unittest.TestCase):
    def test_all(self):
        self.assertEqual([double(n) for n in (1, 2, 3)], json.loads(WANTED.read_text()))
"""
ONE_CASE = "import unittest\n\nfrom work import double\n\n\nclass T(unittest.TestCase):\n    def test_three(self):\n        assert double(3) == 6\n"
HELPED = "from helpers import same\nfrom work import double\n\n\ndef test_three():\n    same(double(3), 6)\n"
HELPER = "def same(a, b):\n    assert a == b\n"
SAYS = "from work import double\n\nprint(double(3))\n"
DATA = {"tests/data/wanted.json": "[2, 4, 6]\n", "conftest.py": ""}
OTHER_DATA = {"tests/data/wanted.json": "[3, 4, 5]\n"}
TESTED = {"tests/test_work.py": WANTED, **DATA}
HELPING = {"tests/test_work.py": HELPED, "tests/helpers.py": HELPER, "conftest.py": ""}
NO_HELP = {"tests/helpers.py": "def same(a, b):\n    pass\n"}
SAID = {"say.py": SAYS, "tests/wanted.txt": "6\n"}
OTHER_SAID = {"tests/wanted.txt": "5\n"}
SCRIPT = {"tests/run.sh": "python3 say.py | diff - tests/wanted.txt\n"}
SNAPSHOT = """import pathlib

from work import double


def test_it():
    assert str(double(3)) == (pathlib.Path(__file__).parent / "__snapshots__/it.ambr").read_text()
"""


NOT_PASSED = ("failed", "unverified")


@dataclass(frozen=True)
class Way:
    """A command, its inputs, and a change that fits them to wrong work."""

    run: tuple[str, ...]
    there: Mapping[str, str]
    fits: Mapping[str, str]


BY_DATA = {
    "whatever pytest finds": Way(PYTEST, TESTED, OTHER_DATA),
    "a file": Way((*PYTEST, "tests/test_work.py"), TESTED, OTHER_DATA),
    "a test": Way((*PYTEST, "tests/test_work.py::test_all"), TESTED, OTHER_DATA),
    "a folder": Way((*PYTEST, "tests"), TESTED, OTHER_DATA),
    "cases": Way(
        ("python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."),
        {"tests/test_work.py": CASE, "tests/__init__.py": "", **DATA},
        OTHER_DATA,
    ),
    "a script": Way(("sh", "tests/run.sh"), {**SAID, **SCRIPT}, OTHER_SAID),
    "make": Way(
        ("make", "test"),
        {**SAID, **SCRIPT, "Makefile": "test:\n\tsh tests/run.sh\n"},
        OTHER_SAID,
    ),
    "diff": Way(
        ("sh", "-c", "python3 say.py | diff - tests/wanted.txt"), SAID, OTHER_SAID
    ),
    "a snapshot": Way(
        PYTEST,
        {"parts/test_it.py": SNAPSHOT, "parts/__snapshots__/it.ambr": "6", "conftest.py": ""},
        {"parts/__snapshots__/it.ambr": "5"},
    ),
    "a helper": Way(PYTEST, HELPING, NO_HELP),
    "a helper of a file": Way((*PYTEST, "tests/test_work.py"), HELPING, NO_HELP),
    "a test that Django finds": Way(
        ("python3", "manage.py", "test"),
        {
            "manage.py": "import unittest\n\nunittest.main(module=None, argv=['manage.py', 'discover', '-p', 'tests*.py'])\n",
            "shop/__init__.py": "",
            "shop/tests.py": ONE_CASE,
        },
        {"shop/tests.py": ONE_CASE.replace("== 6", "== 5")},
    ),
    "a hook of Python itself": Way(
        ("env", "PYTHONPATH=.", *PYTEST),
        TESTED,
        {"sitecustomize.py": "import work\n\nwork.double = lambda x: x * 2\n"},
    ),
    "a hook below a script that checks": Way(
        ("sh", "check.sh"),
        {**TESTED, "check.sh": "python -m pytest -q\n"},
        {"tests/conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"
         "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
    ),
}  # fmt: skip


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


async def begin(bench: Bench, files: Mapping[str, str]) -> None:
    for path in sorted(bench.project.rglob("*"), reverse=True):
        if ".git" not in path.relative_to(bench.project).parts:
            path.rmdir() if path.is_dir() else path.unlink()
    write_files(bench.project, files)
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)


@pytest.mark.parametrize("way", BY_DATA.values(), ids=BY_DATA.keys())
async def test_expected_data_is_left_out_unless_the_task_names_it(way: Way):
    base, changes = {"work.py": WRONG, **way.there}, {"work.py": RIGHT, **way.fits}
    run = check("flip", way.run)

    assert await find_left_out(run, base, changes) == set(way.fits)
    assert await find_left_out(run, base, changes, files=tuple(changes)) == set()


async def test_wrong_work_does_not_pass_by_a_change_of_expected_data(bench: Bench):
    way = BY_DATA["a file"]
    await begin(bench, {"work.py": WRONG, **way.there})
    run = check("flip", way.run)

    hidden = await bench.outcome(run, {"note.txt": "more\n", **way.fits})
    good = await bench.outcome(run, {"work.py": RIGHT})

    assert hidden.state == "failed", "its worker is told, and may try again"
    assert any("task's `files` do not name it" in finding for finding in hidden.findings)
    assert good.state == "passed"


async def test_wrong_expected_data_may_be_repaired_if_the_task_names_it(bench: Bench):
    await begin(bench, {"work.py": RIGHT, **TESTED, **OTHER_DATA})

    outcome = await bench.outcome(check("flip", PYTEST), DATA, files=("tests/data/wanted.json",))

    assert outcome.state == "passed"


async def test_new_tests_may_bring_more_help(bench: Bench):
    grown = {
        "work.py": f"{RIGHT}\n\ndef triple(x):\n    return x * 3\n",
        "tests/helpers.py": f"{HELPER}\n\ndef six():\n    return 6\n",
        "tests/test_more.py": "from helpers import same, six\nfrom work import triple\n\n\ndef test_two():\n    same(triple(2), six())\n",
    }
    await begin(bench, {"work.py": RIGHT, **HELPING})

    outcome = await bench.outcome(check("hold", PYTEST), grown, files=tuple(grown))

    assert outcome.state == "passed"


def ruff(*more: str, kind: str | None = "flip") -> Check:
    return check(kind, ("python", "-m", "ruff", "check", "--no-cache", *more))


UNUSED = "import os\n\nX = 1\n"
CLEAN = "X = 1\n"
IGNORES = "lint.ignore = ['F401']\n"
IN_PYPROJECT = "[tool.ruff.lint]\nignore = ['F401']\n"
PROJECT = "[project]\nname = 'x'\nversion = '1'\n"
LINT = {"Makefile": "lint:\n\tpython -m ruff check --no-cache .\n"}
BY_RULES = {
    "settings": (ruff("."), {}, {"ruff.toml": IGNORES}),
    "a project's settings": (ruff("."), {}, {"pyproject.toml": IN_PYPROJECT}),
    "more in a project's settings": (
        ruff("."),
        {"pyproject.toml": PROJECT},
        {"pyproject.toml": PROJECT + IN_PYPROJECT},
    ),
    "settings of a folder": (ruff("parts"), {}, {"parts/ruff.toml": "exclude = ['a.py']\n"}),
    "settings below make": (check("flip", ("make", "lint")), LINT, {".ruff.toml": IGNORES}),
    "settings below a script": (
        check("flip", ("sh", "scripts/check.sh")),
        {"scripts/check.sh": "python -m ruff check --no-cache .\n"},
        {"ruff.toml": IGNORES},
    ),
}


@pytest.mark.parametrize(("run", "there", "rules"), BY_RULES.values(), ids=BY_RULES.keys())
async def test_rules_of_a_linter_are_no_part_of_the_work_unless_the_task_names_them(
    run: Check, there: Mapping[str, str], rules: Mapping[str, str]
):
    base, changes = {"parts/a.py": UNUSED, **there}, {"parts/a.py": CLEAN, **rules}

    assert await find_left_out(run, base, changes) == set(rules)
    assert await find_left_out(run, base, changes, files=tuple(changes)) == set()


async def test_changed_rules_of_a_linter_do_not_pass_a_check(bench: Bench):
    run, there, rules = BY_RULES["settings below make"]
    await begin(bench, {"parts/a.py": UNUSED, **there})

    hidden = await bench.outcome(run, {"note.txt": "more\n", **rules})
    half = await bench.outcome(run, {"parts/a.py": "import sys\n\nX = 1\n", **rules})
    asked = await bench.outcome(
        run, {"parts/a.py": UNUSED + "Y = 2\n", **rules}, files=tuple(rules)
    )

    assert hidden.state in NOT_PASSED
    assert half.state in NOT_PASSED
    assert asked.state == "passed"


async def test_right_work_may_bring_new_rules(bench: Bench):
    await begin(bench, {"parts/a.py": UNUSED})

    outcome = await bench.outcome(ruff("."), {"parts/a.py": CLEAN, "ruff.toml": IGNORES})

    assert outcome.state == "passed"


async def test_work_is_not_broken_by_new_rules(bench: Bench):
    await begin(bench, {"parts/a.py": CLEAN})

    outcome = await bench.outcome(
        ruff(".", kind="hold"), {"parts/a.py": UNUSED, "ruff.toml": IGNORES}
    )

    assert outcome.state == "failed"


async def test_rules_come_with_the_first_files_that_they_are_for(bench: Bench):
    await begin(bench, {"README.md": "A project.\n"})

    outcome = await bench.outcome(
        ruff(".", kind=None), {"parts/a.py": UNUSED, "ruff.toml": IGNORES}
    )

    assert outcome.state == "passed"


async def test_a_linter_may_find_fault_with_tests(bench: Bench):
    """The target of `make lint` is the work, also where it is a test."""
    await begin(bench, {"tests/test_a.py": UNUSED, **LINT})

    outcome = await bench.outcome(
        check("flip", ("make", "lint")), {"tests/test_a.py": CLEAN}, files=("tests/test_a.py",)
    )

    assert outcome.state == "passed"
