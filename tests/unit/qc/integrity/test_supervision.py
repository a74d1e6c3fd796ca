"""Checks that are programs of their own: work that ends them with 0 passes nothing, and a program may end as it likes."""

from pathlib import Path

import pytest

from mimir.domain.plan import Task
from mimir.qc.checks.regression import AcceptedTask
from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import Bench, check, opened

WRONG = "def double(x):\n    return x + 2\n"
RIGHT = "def double(x):\n    return x * 2\n"
SCRIPT = "from work import double\n\nassert double(3) == 6\n"
GUARDED = "import sys\n\nfrom work import double\n\n\ndef main():\n    return 0 if double(3) == 6 else 1\n\n\nif __name__ == '__main__':\n    sys.exit(main())\n"
RUNS = {
    "a script": ("python3", "check.py"),
    "a script that tells": ("python3", "guarded.py"),
    "a line": ("python3", "-c", "from work import double; assert double(3) == 6"),
    "an exit code": ("python3", "-c", "import sys, work; sys.exit(work.double(3) != 6)"),
    "a module": ("python3", "-W", "ignore", "-m", "checks.first"),
    "a shell": "cd checks && PYTHONPATH=.. python3 first.py",
    "two in a shell": "python3 -c 'print(1)' && python3 -c 'from work import double; assert double(3) == 6'",
}
ENDS = {
    "at once": f"import os\n\nos._exit(0)\n{WRONG}",
    "politely": f"import sys\n\nsys.exit(0)\n{WRONG}",
    "when it is called": "import os\n\n\ndef double(x):\n    os._exit(0)\n",
    "politely when it is called": "def double(x):\n    raise SystemExit\n",
    "in other words": "def double(x):\n    quit()\n",
    "at the end": f"import atexit\nimport os\n\natexit.register(os._exit, 0)\n\n\n{WRONG}",
    "by another exit": f"import os\nimport sys\n\nsys.exit = lambda *a: os._exit(0)\nsys.excepthook = lambda *a: os._exit(0)\n\n\n{WRONG}",
    "as another program": "import os\n\n\ndef double(x):\n    os.execv('/bin/true', ['true'])\n",
    "while another one does": "import os\n\n\ndef double(x):\n    if not os.fork():\n        os.execv('/bin/true', ['true'])\n    os.wait()\n    os._exit(0)\n",
    "below Python": "import ctypes\n\n\ndef double(x):\n    ctypes.CDLL(None).exit(0)\n",
}
WAYS = {f"{run}, {end}": (run, end) for run in RUNS for end in ENDS}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    return await opened(tmp_path, frozen_clock)


async def begin(bench: Bench, work: str) -> None:
    checks = {"check.py": SCRIPT, "guarded.py": GUARDED, "checks/first.py": SCRIPT}
    write_files(bench.project, {"work.py": work, **checks})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)


@pytest.mark.parametrize(("run", "end"), WAYS.values(), ids=WAYS.keys())
async def test_program_that_is_ended_by_the_work_is_not_passed(bench: Bench, run: str, end: str):
    await begin(bench, WRONG)

    outcome = await bench.outcome(check("flip", RUNS[run]), {"work.py": ENDS[end]})

    assert outcome.state != "passed"


async def test_it_is_told_why(bench: Bench):
    await begin(bench, WRONG)

    outcome = await bench.outcome(check("flip", RUNS["a script"]), {"work.py": ENDS["politely"]})

    assert (outcome.state, outcome.after.describe_end) == ("failed", "cut short (exit 0)")
    assert any("ended before its own end" in finding for finding in outcome.findings)


async def test_what_held_must_hold_to_its_end(bench: Bench):
    await begin(bench, RIGHT)

    outcome = await bench.outcome(check("hold", RUNS["a script"]), {"work.py": ENDS["politely"]})

    assert outcome.state == "failed"


async def test_program_that_was_always_ended_so_is_taken_as_it_is(bench: Bench):
    await begin(bench, ENDS["politely"])

    changed = ENDS["politely"] + "\n\ndef more():\n    pass\n"
    outcome = await bench.outcome(check("hold", RUNS["a script"]), {"work.py": changed})

    assert outcome.state == "passed"


@pytest.mark.parametrize(("later", "green"), [(ENDS["politely"], False), (RIGHT + "\n", True)])
async def test_what_was_passed_must_come_to_its_end_on_merged_trees_too(
    bench: Bench, later: str, green: bool
):
    await begin(bench, RIGHT)
    one = check("hold", RUNS["a script"])
    task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(one,))
    passed = frozenset((one.id,))
    mine = AcceptedTask(task=task, attempt=1, answer="", passed=passed, tree=bench.base)
    write_files(bench.project, {"work.py": later})
    merged = await bench.history.tree((await bench.history.base("run-3")).commit)

    runs = await bench.checks.on_tree(mine, one, merged, (mine,), phase="merged")

    assert runs[-1].green is green


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_right_work_is_passed(bench: Bench, run):
    await begin(bench, WRONG)

    outcome = await bench.outcome(check("flip", run), {"work.py": RIGHT})

    assert (outcome.state, outcome.findings) == ("passed", ())


TOOL = "import sys\n\n\ndef main(argv=None):\n    print(argv or sys.argv[1:])\n    sys.exit(0)\n\n\nif __name__ == '__main__':\n    main()\n"
HONEST = {
    "a tool that ends itself": ("-m", "tool", "x"),
    "a tool's file": ("tool.py", "x"),
    "a tool that is called last": ("-c", "import tool; tool.main(['x'])"),
    "a tool whose code is handed on": ("-c", "import sys, tool; sys.exit(tool.main(['x']))"),
    "a tool that is called in the end": ("last.py",),
    "an exit that is caught": ("caught.py",),
    "tests": ("cases.py",),
    "other processes": ("processes.py",),
    "itself": ("-I", "mirror.py", "a b", "--flag"),
    "a script below": ("below/script.py",),
    "a loop of events": ("-c", "import asyncio; asyncio.run(asyncio.sleep(0)); print('done')"),
    "threads": ("-c", "import threading; threading.Thread(target=print, args=('late',)).start()"),
}
FILES = {
    "tool.py": TOOL,
    "last.py": "import tool\n\n\ndef main():\n    with open(__file__) as file:\n        assert file.read()\n        tool.main(['x'])\n\n\nif __name__ == '__main__':\n    try:\n        main()\n    finally:\n        print('done')\n",
    "caught.py": "import tool\n\ntry:\n    tool.main(['x'])\nexcept SystemExit as end:\n    assert end.code == 0\nelse:\n    raise AssertionError\n",
    "cases.py": "import doctest\nimport unittest\n\n\nclass T(unittest.TestCase):\n    '''\n    >>> T.__module__\n    '__main__'\n    '''\n    def test_it(self):\n        self.assertEqual(doctest.testmod().failed, 0)\n\n\nunittest.main()\n",
    "processes.py": "import multiprocessing\nimport pickle\nimport subprocess\nimport sys\n\n\nclass Mine:\n    pass\n\n\ndef work(x):\n    return x + 1\n\n\nif __name__ == '__main__':\n    for way in ('fork', 'spawn'):\n        with multiprocessing.get_context(way).Pool(1) as pool:\n            assert pool.map(work, [1, 2]) == [2, 3]\n    assert type(pickle.loads(pickle.dumps(Mine()))) is Mine\n    subprocess.run([sys.executable, '-c', 'import sys; sys.exit(0)'], check=True)\n",
    "mirror.py": "from __future__ import annotations\n\nimport inspect\nimport sys\n\n\ndef shown(x: Unknown):\n    pass\n\n\nassert 'Unknown' in inspect.getsource(shown)\nassert sys.argv == ['mirror.py', 'a b', '--flag'], sys.argv\nassert __name__ == '__main__' and __file__.endswith('mirror.py')\nassert 'MIMIR_WATCHER' not in __import__('os').environ\n",
    "below/script.py": "import beside\n\nassert beside.VALUE == 1\nassert __loader__.get_data(__file__)\n",
    "below/beside.py": "VALUE = 1\n",
}
