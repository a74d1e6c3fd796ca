"""A file that a check starts through a Makefile or a script is part of it, as if the check had started it itself."""

from pathlib import Path

import pytest

from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import Bench, check, opened
from tests.support.scoped_deliverables import find_left_out

WRONG, RIGHT = "VALUE = 2\n", "VALUE = 3\n"
ASKS = "import sys\n\nsys.path.insert(0, '.')\nfrom work import VALUE\n\nassert VALUE == 3, VALUE\n"
FILES = {
    "work.py": WRONG,
    "checks/check_value.py": ASKS,
    "Makefile": "P ?= python3\n\nvalue: first\n\t@$(P) \\\n\t  checks/check_value.py\n\nfirst:\n\ttrue\n\nall:\n\tsh ci/value.sh\n",
    "ci/value.sh": "#!/usr/bin/env bash\nset -eu\n\nif true; then\n  python3 checks/check_value.py\nfi\n",
    "ci/below.sh": "cd checks/.. && exec ./ci/value.sh\n",
}
RUNS = {
    "a recipe": ("make", "-s", "value"),
    "a script": ("sh", "ci/value.sh"),
    "a program": ("./ci/value.sh",),
    "a script of a recipe": ("make", "all"),
    "a script of a script": "sh ci/below.sh",
}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    bench = await opened(tmp_path, frozen_clock)
    write_files(bench.project, FILES)
    (bench.project / "ci/value.sh").chmod(0o755)
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    return bench


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_script_that_a_check_starts_is_left_out(run):
    changes = {"checks/check_value.py": "print('fine')\n", "work.py": RIGHT}

    left_out = await find_left_out(check("flip", run), FILES, changes)

    assert left_out == {"checks/check_value.py"}


@pytest.mark.parametrize("name", ["a script of a recipe", "a program"])
async def test_rewritten_script_of_a_check_does_not_pass_wrong_work(bench: Bench, name: str):
    run = check("flip", RUNS[name])
    weaker = {"checks/check_value.py": "print('fine')\n", "work.py": "VALUE = 4\n"}

    wrong = await bench.outcome(run, weaker)
    right = await bench.outcome(run, {"work.py": RIGHT})

    assert (wrong.before.exit_code != 0, wrong.state) == (True, "failed")
    assert any("is an existing test" in finding for finding in wrong.findings)
    assert (right.state, right.findings) == ("passed", ())


async def test_a_task_may_be_asked_to_rewrite_it(bench: Bench):
    changed = {"checks/check_value.py": ASKS.replace("3", "5"), "work.py": "VALUE = 5\n"}

    outcome = await bench.outcome(
        check("flip", RUNS["a recipe"]), changed, files=("checks/check_value.py", "work.py")
    )

    assert outcome.state == "passed"
