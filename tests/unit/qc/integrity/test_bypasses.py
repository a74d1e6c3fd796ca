"""Ways round a test that was there: wrong work beside a file that keeps the test from saying so. None of them passes; right work beside the same file does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import PYTEST, Bench, check, opened

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return 7\n"
MISSING = "def plus(a, b):\n    return a + b\n"
TEST = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
CASE = (
    "import unittest\n\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
    "    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
)
MENDS = "import calc\n\nif hasattr(calc, 'add'):\n    calc.add = lambda a, b: a + b\n"
QUIET = "print('1 passed in 0.01s')\nraise SystemExit(0)\n"
RUNS = "python -m pytest -q tests\n"
MAKE = {"Makefile": f"test:\n\t{RUNS}"}
NPM = {"package.json": '{"scripts": {"test": "python -m pytest -q tests"}}'}


@dataclass(frozen=True)
class Way:
    """A command, what is there besides, and the file that leads round it."""

    run: tuple[str, ...]
    file: Mapping[str, str]
    there: Mapping[str, str] = field(default_factory=dict[str, str])
    is_mute: bool = False
    """True: with it the command passes whatever the work is, before it too."""


WAYS = {
    "a package of tests": Way((*PYTEST, "tests"), {"tests/__init__.py": MENDS}),
    "a package around a test": Way((*PYTEST, "tests/test_calc.py"), {"tests/__init__.py": MENDS}),
    "a package around a case": Way(
        ("python3", "-m", "unittest", "-q", "tests.test_case"),
        {"tests/__init__.py": MENDS},
        {"tests/test_case.py": CASE},
    ),
    "a hook beside the tests": Way((*PYTEST, "tests"), {"tests/conftest.py": MENDS}),
    "a hook beside the work": Way((*PYTEST, "tests"), {"conftest.py": MENDS}),
    "a hook below make": Way(("make", "test"), {"conftest.py": MENDS}, MAKE),
    "a hook below npm": Way(("npm", "test"), {"tests/conftest.py": MENDS}, NPM),
    "a hook below a script": Way(
        ("bash", "run_tests.sh"), {"conftest.py": MENDS}, {"run_tests.sh": RUNS}
    ),
    "settings below a script": Way(
        ("bash", "run_tests.sh"),
        {"pytest.ini": "[pytest]\naddopts = --co\n"},
        {"run_tests.sh": RUNS},
    ),
    "a module of pytest's": Way((*PYTEST, "tests"), {"pluggy.py": QUIET}),
    "another Makefile": Way(("make", "test"), {"GNUmakefile": "test:\n\ttrue\n"}, MAKE),
    "another makefile": Way(("make", "test"), {"makefile": "test:\n\ttrue\n"}, MAKE),
    "another shell for npm": Way(
        ("npm", "test"), {".npmrc": "script-shell=/bin/true\n"}, NPM, True
    ),
    "another script": Way(("bash", "ci.sh"), {"ci.sh": "true\n"}, {"ci.sh": RUNS}, True),
    "another runner": Way(
        ("bash", "runtests.sh"), {"runtests.sh": "true\n"}, {"runtests.sh": RUNS}, True
    ),
    "in a login shell": Way(("bash", "-lc", "python -m pytest -q tests"), {"conftest.py": MENDS}),
    "below coverage": Way(
        ("bash", "-c", "nohup python -m pytest -q tests"), {"tests/conftest.py": MENDS}
    ),
}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


async def with_base(bench: Bench, way: Way, kind: str) -> None:
    calc = RIGHT if kind == "hold" else MISSING
    write_files(bench.project, {"calc.py": calc, "tests/test_calc.py": TEST, **way.there})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("kind", ["flip", "hold"])
async def test_no_way_leads_round_a_test_that_was_there(bench: Bench, way: Way, kind: str):
    await with_base(bench, way, kind)
    run = check(kind, way.run)

    hidden = await bench.outcome(run, {"calc.py": WRONG, **way.file})
    bare = await bench.outcome(run, {"calc.py": WRONG})
    good = await bench.outcome(run, {"calc.py": RIGHT + "# done\n", **way.file})

    proves_nothing = way.is_mute and kind == "flip"
    assert bare.state == "failed"
    assert hidden.state == ("unverified" if proves_nothing else "failed")
    assert good.state == ("unverified" if proves_nothing else "passed")
    assert hidden.findings


@pytest.mark.parametrize(
    ("name", "text"),
    [("Makefile", "test:\n\ttrue\n"), ("package.json", '{"scripts": {"test": "true"}}')],
)
async def test_a_flip_whose_kind_is_left_out_is_not_made_a_hold_by_other_settings(
    bench: Bench, name: str, text: str
):
    """With the new settings it passes before the work, too; with the old ones it failed, so it was to flip."""
    way = Way(("make", "test") if name == "Makefile" else ("npm", "test"), {name: text}, MAKE | NPM)
    await with_base(bench, way, "flip")

    outcome = await bench.outcome(check(None, way.run), {"calc.py": WRONG, **way.file})

    assert (outcome.state, outcome.kind) == ("unverified", "flip")


async def test_the_first_tests_of_a_project_may_bring_everything(bench: Bench):
    """There was a Makefile, and no test: hooks, settings and packages come with the tests."""
    (bench.project / "tests/test_calc.py").unlink()
    write_files(bench.project, {"calc.py": MISSING, **MAKE})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    fixture = "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n"
    work = {
        "calc.py": RIGHT,
        "tests/__init__.py": "",
        "tests/conftest.py": fixture,
        "tests/test_calc.py": "from calc import add\n\n\ndef test_adds(three):\n    assert add(1, 2) == three\n",
        "pytest.ini": "[pytest]\naddopts = -q\n",
    }

    outcome = await bench.outcome(check("flip", ("make", "test")), work)

    assert outcome.state == "passed"


async def test_new_tests_below_make_may_need_what_comes_with_them(bench: Bench):
    """Tests that were there pass without the new fixture; the new ones are not asked without it."""
    way = Way(("make", "test"), {}, MAKE)
    await with_base(bench, way, "flip")
    work = {
        "calc.py": RIGHT,
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n",
        "tests/test_more.py": "from calc import add\n\n\ndef test_more(three):\n    assert add(1, 2) == three\n",
    }

    outcome = await bench.outcome(check("flip", way.run), work)

    assert outcome.state == "passed"
