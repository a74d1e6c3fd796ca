"""Programs that are the work, or that show their help: they may end themselves wherever they like, as real programs do."""

from pathlib import Path

import pytest

from mimir.domain.plan import Task
from mimir.qc.checks.regression import AcceptedTask
from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import Bench, check, opened
from tests.unit.qc.integrity.test_supervision import ENDS, SCRIPT

MAIN = "import sys\n\nfrom app.cli import main\n\nsys.exit(main())\n"
NOTHING = "def main():\n    return 2\n"
CLI = "import sys\n\nfrom app.shown import show\n\n\ndef main():\n    if sys.argv[1:] in (['about'], ['--version']):\n        show()\n    print('nothing to do')\n    return 2\n"
SHOWN = "import sys\n\n\ndef show():\n    print('app 2.0')\n    sys.exit(0)\n"
PARSER = "import argparse\n\n\ndef parsed():\n    return argparse.ArgumentParser().parse_args()\n"
USER = "import options\n\nfound = options.parsed()\nprint(found)\n"
QUICK = "import os\nimport sys\n\nprint('done')\nsys.stdout.flush()\nos._exit(0)\n"
AGAIN = "import os\nimport sys\n\nif os.environ.get('PYTHONHASHSEED') != '0':\n    os.environ['PYTHONHASHSEED'] = '0'\n    os.execv(sys.executable, [sys.executable, *sys.argv])\nprint('done')\n"
TEST = "import subprocess\n\n\ndef test_it():\n    subprocess.run(['python3', '-m', 'app', 'about'], check=True)\n"
MAKEFILE = "about:\n\tpython3 -m app about\n\nquick:\n\tpython3 quick.py\n\ntest:\n\tpython3 -m pytest -q tests\n"

BASE = {
    "app/__init__.py": "",
    "app/__main__.py": MAIN,
    "app/cli.py": NOTHING,
    "lib/tool/__main__.py": "raise SystemExit(1)\n",
    "user.py": USER,
    "options.py": "",
    "Makefile": MAKEFILE,
    "tests/test_app.py": TEST,
}
WORK = {
    "app/cli.py": CLI,
    "app/shown.py": SHOWN,
    "lib/tool/__main__.py": QUICK,
    "options.py": PARSER,
    "quick.py": QUICK,
    "again.py": AGAIN,
}
RUNS = {
    "a command": ("python3", "-m", "app", "about"),
    "a command in a pipe": "python3 -m app about | grep -q 2.0",
    "a command below make": ("make", "about"),
    "a command below tests that make starts": ("make", "test"),
    "a version": ("python3", "-m", "app", "--version"),
    "help": ("python3", "user.py", "--help"),
    "a program of its own": ("python3", "quick.py"),
    "a program of its own below make": ("make", "quick"),
    "a module of its own": "PYTHONPATH=lib python3 -m tool",
    "itself once more": ("python3", "again.py"),
}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    bench = await opened(tmp_path, frozen_clock)
    write_files(bench.project, BASE)
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    return bench


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_program_that_is_the_work_may_end_itself(bench: Bench, run):
    outcome = await bench.outcome(check("flip", run), WORK)

    assert (outcome.state, outcome.findings) == ("passed", ())


@pytest.mark.parametrize("name", ["check.py", "tests/oracle.py"])
async def test_what_says_that_it_tests_is_watched_though_the_attempt_wrote_it(
    bench: Bench, name: str
):
    run = f"PYTHONPATH=. python3 {name}"

    outcome = await bench.outcome(
        check("flip", run), {name: SCRIPT, "work.py": ENDS["when it is called"]}
    )

    assert outcome.state == "failed"


async def test_program_that_another_task_makes_its_work_may_end_itself_later(bench: Bench):
    write_files(bench.project, {"user.py": "print('done')\n"})
    before = await bench.history.tree((await bench.history.base("run-3")).commit)
    one = check("hold", ("python3", "user.py"))
    task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(one,))
    mine = AcceptedTask(task=task, attempt=1, answer="", passed=frozenset((one.id,)), tree=before)
    other = Task(id="u", title="u", prompt="p", worker_role="w")
    theirs = AcceptedTask(
        task=other, attempt=1, answer="", passed=frozenset(), changed=frozenset(("user.py",))
    )
    write_files(bench.project, {"user.py": QUICK})
    merged = await bench.history.tree((await bench.history.base("run-4")).commit)

    greens = [
        (await bench.checks.on_tree(mine, one, merged, others, phase="merged"))[-1].green
        for others in ((mine, theirs), (mine,))
    ]

    assert greens == [True, False]
