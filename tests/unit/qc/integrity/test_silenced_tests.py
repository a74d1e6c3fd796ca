"""Work that silences its tests: it ends their process, now or at the end, or has them skipped. The command ends with 0, and nothing is passed."""

from pathlib import Path

import pytest

from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import PYTEST, Bench, check, opened

WRONG = "def double(x):\n    return x + 2\n"
RIGHT = "def double(x):\n    return x * 2\n"
TEST = "from work import double\n\n\ndef test_three():\n    assert double(3) == 6\n"
CASE = "import unittest\n\nfrom work import double\n\n\nclass T(unittest.TestCase):\n    def test_three(self):\n        self.assertEqual(double(3), 6)\n"
OTHER = (
    "import unittest\n\n\nclass O(unittest.TestCase):\n    def test_other(self):\n        pass\n"
)
MAKEFILE = "test:\n\tpython3 -m unittest\n\tpython3 -m compileall -q .\n"
UNITTEST = ("python3", "-m", "unittest")
SCRIPT = ("python3", "run_tests.py")
MAKE = ("make", "test")
SILENT = {
    "at once": "import os\n\nos._exit(0)\n",
    "when it is called": "import os\n\n\ndef double(x):\n    os._exit(0)\n",
    "at the end": f"import atexit\nimport os\n\natexit.register(os._exit, 0)\n\n\n{WRONG}",
    "by another exit": f"import os\nimport sys\n\nsys.exit = lambda *a: os._exit(0)\n\n\n{WRONG}",
    "by a thread": f"import os\nimport threading\n\nthreading.Timer(0, os._exit, (0,)).start()\n\n\n{WRONG}",
    "skipped at once": "import unittest\n\nraise unittest.SkipTest('later')\n",
    "skipped when it is called": "import unittest\n\n\ndef double(x):\n    raise unittest.SkipTest('later')\n",
}
STARTED = ("at once", "at the end", "skipped when it is called")
OF_PYTEST = {
    "skipped": "import pytest\n\n\ndef double(x):\n    pytest.skip('later')\n",
    "skipped at once": "import pytest\n\npytest.skip('later', allow_module_level=True)\n",
    "expected to fail": "import pytest\n\n\ndef double(x):\n    pytest.xfail('later')\n",
    "ended": "import pytest\n\n\ndef double(x):\n    pytest.exit('enough', returncode=0)\n",
    "ended at once": "import pytest\n\npytest.exit('enough', returncode=0)\n",
}
WAYS = {
    **{f"pytest, {name}": (PYTEST, work) for name, work in SILENT.items()},
    **{f"pytest itself, {name}": (PYTEST, work) for name, work in OF_PYTEST.items()},
    **{f"unittest, {name}": (UNITTEST, work) for name, work in SILENT.items()},
    **{f"a script, {name}": (SCRIPT, SILENT[name]) for name in STARTED},
    **{f"make, {name}": (MAKE, SILENT[name]) for name in STARTED},
}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


async def begin(bench: Bench, run: tuple[str, ...], work: str) -> None:
    test = TEST if run is PYTEST else CASE
    files = {"work.py": work, "test_work.py": test, "test_other.py": OTHER}
    started = {
        "run_tests.py": "import unittest\n\nunittest.main(module='test_work')\n",
        "Makefile": MAKEFILE,
    }
    write_files(bench.project, files | started)
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)


QUIET = ("make, at once",)
"""Ways that say nothing; as some scripts do where all is well."""
FLIPS = {name: way for name, way in WAYS.items() if name not in QUIET}
CASES = {
    **{f"flip, {name}": ("flip", *way) for name, way in FLIPS.items()},
    **{f"hold, {name}": ("hold", *way) for name, way in WAYS.items()},
}


@pytest.mark.parametrize(("kind", "run", "work"), CASES.values(), ids=CASES.keys())
async def test_tests_that_are_silenced_pass_nothing(
    bench: Bench, kind: str, run: tuple[str, ...], work: str
):
    await begin(bench, run, RIGHT if kind == "hold" else WRONG)

    outcome = await bench.outcome(check(kind, run), {"work.py": work})

    assert (outcome.state, outcome.after.green) == ("failed", False)
    if outcome.after.exit_code == 0:
        assert any("skips or removes tests" in finding for finding in outcome.findings)


async def test_a_test_that_skips_itself_is_held_against_nobody(bench: Bench):
    """One that needs what is not here, before and after the work; and a new one of that kind, for what the work has added."""
    await begin(bench, PYTEST, WRONG)
    lame = "import pytest\n\n\n@pytest.mark.skip(reason='no such device')\ndef test_device():\n    assert False\n"
    more = "import work\n\nNEW = work.triple\n\n\n" + lame
    work = f"{RIGHT}\n\ndef triple(x):\n    return x * 3\n"

    outcome = await bench.outcome(
        check("flip", PYTEST), {"work.py": work, "test_lame.py": lame, "test_more.py": more}
    )

    assert outcome.state == "passed"


async def test_a_script_may_speak_of_failures_only(bench: Bench):
    quiet = "python3 -m unittest -q > log.txt 2>&1 || { cat log.txt; exit 1; }\n"
    await begin(bench, UNITTEST, WRONG)
    write_files(bench.project, {"run_tests.sh": quiet})
    bench.base = await bench.history.tree((await bench.history.base("run-3")).commit)

    outcome = await bench.outcome(check("flip", ("sh", "run_tests.sh")), {"work.py": RIGHT})

    assert "Ran 2 tests" in outcome.before.output_tail
    assert outcome.state == "passed"
