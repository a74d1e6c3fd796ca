"""Python programs that a check does not start itself: below `make`, scripts and pipes they are watched like its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mimir.qc.integrity import supervisor
from mimir.qc.integrity.supervision import NOT_ENDED, environment, may_be_ended, with_shims
from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import Bench, check, opened
from tests.unit.qc.integrity.test_supervision import ENDS, FILES, HONEST, RIGHT, SCRIPT, WRONG

PYTHON = str(Path(sys.executable).resolve())
MAKEFILE = f"path:\n\t{PYTHON} check.py\n\nvenv:\n\tpython3 -m venv --without-pip .venv\n\t.venv/bin/python check.py\n\ncheck:\n\tpython3 check.py\n\ntest:\n\tpython3 -m pytest -q\n\nscript:\n\tpytest -q\n\nunit:\n\tpython3 -m unittest -q\n\ndrive:\n\tpython3 drive.py\n"
DRIVE = (
    "import subprocess\nimport sys\n\nsubprocess.run([sys.executable, 'check.py'], check=True)\n"
)
TESTS = "import unittest\n\nfrom work import double\n\n\ndef test_it():\n    assert double(3) == 6\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(double(3), 6)\n"
RUNS = {
    "make": ("make", "check"),
    "pytest below make": ("make", "test"),
    "pytest's own script below make": ("make", "script"),
    "unittest below make": ("make", "-s", "unit"),
    "a shell script": ("sh", "run.sh"),
    "a program of its own": ("./direct.py",),
    "a Python by its path": ("make", "path"),
    "a Python of its own": ("make", "venv"),
    "a program that names a Python by its path": ("./named.py",),
    "a program that starts another with its own Python": ("python3", "drive.py"),
    "the same below make": ("make", "drive"),
    "a pipe": "python3 check.py && echo ok | grep ok",
    "lines": "set -e\npython3 check.py\necho fine",
    "what cannot be read": "set -e\n# it's here\npython3 check.py",
    "a condition": "if python3 check.py; then exit 0; else exit 1; fi",
    "a document": f"python3 - <<'END'\n{SCRIPT}END",
    "what is read": "python3 < check.py",
    "what is read by a Python named by its path": f"cat check.py | {PYTHON} -",
    "what is found": ("find", ".", "-name", "check.py", "-exec", "python3", "{}", "+"),
    "tests in a pipe": "set -o pipefail; python3 -m pytest -q | cat",
}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    bench = await opened(tmp_path, frozen_clock)
    files = {"check.py": SCRIPT, "drive.py": DRIVE, "test_it.py": TESTS, "Makefile": MAKEFILE}
    programs = {
        "run.sh": "#!/bin/sh\nset -e\npython3 check.py\n",
        "direct.py": f"#!/usr/bin/env python3\n{SCRIPT}",
        "named.py": f"#!{PYTHON} -u\n{SCRIPT}",
    }
    write_files(bench.project, files | programs)
    for name in programs:
        (bench.project / name).chmod(0o755)
    return bench


async def begin(bench: Bench, work: str) -> None:
    write_files(bench.project, {"work.py": work})
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_program_that_is_ended_by_the_work_is_not_passed(bench: Bench, run):
    await begin(bench, WRONG)

    outcome = await bench.outcome(check("flip", run), {"work.py": ENDS["when it is called"]})

    assert outcome.before.exit_code
    assert outcome.state != "passed"


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
async def test_however_it_is_ended(bench: Bench, end: str):
    await begin(bench, WRONG)

    outcome = await bench.outcome(check("flip", RUNS["make"]), {"work.py": end})

    assert (outcome.state, outcome.after.describe_end) == ("failed", "cut short (exit 0)")
    assert any("ended before its own end" in finding for finding in outcome.findings)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_right_work_is_passed(bench: Bench, run):
    await begin(bench, WRONG)

    outcome = await bench.outcome(check("flip", run), {"work.py": RIGHT})

    assert (outcome.state, outcome.findings) == ("passed", ())


async def test_program_that_was_always_ended_so_is_taken_as_it_is(bench: Bench):
    await begin(bench, ENDS["politely"])

    changed = f"{ENDS['politely']}\n\ndef more():\n    pass\n"
    outcome = await bench.outcome(check("hold", RUNS["make"]), {"work.py": changed})

    assert outcome.state == "passed"


HARMLESS = {
    "codes": "code=0; python3 -c 'raise SystemExit(3)' || code=$?; test $code = 3",
    "words in the place of a code": "python3 -c 'raise SystemExit(\"no\")' 2>&1 | grep -q '^no$'",
    "an error": "! python3 -c '1/0' 2>said && grep -q ZeroDivisionError said",
    "an error that it tells of itself": "python3 -c 'import sys; sys.excepthook = lambda *_: print(\"mine\"); 1/0' | grep -q mine",
    "nothing but its own in an error": "python3 -c '1/0' 2>said || true; if grep -q mimir said; then exit 1; fi; grep -c File said | grep -q 1",
    "work at a bad end": 'code=0; python3 -c \'import atexit, sys; atexit.register(open, "out", "w"); sys.exit(3)\' || code=$?; test $code = 3 && test -f out',
    "standard input": "echo 'print(\"read\")' | python3 - | grep -q read",
    "a document": "python3 <<'END' | grep -q here\nprint('here')\nEND",
    "words of what is read": 'echo \'import sys; assert sys.argv == ["-", "a", "-c"]\' | python3 - a -c',
    "no word of what is read": "echo 'import sys; assert sys.argv == [\"\"] and not sys.stdin.read()' | python3 -u",
    "what is read and ends itself": "printf 'import sys\\nsys.exit()\\nprint(1)\\n' | python3",
    "what is read and none": "! echo '(' | python3 2>said && grep -q SyntaxError said",
    "what is read and fails": "code=0; echo 'raise SystemExit(4)' | python3 - || code=$?; test $code = 4",
    "nothing to be read": "python3 < /dev/null",
    "a version": "python3 --version | grep -q Python",
    "options": "python3 -I -W error -X dev -u -c 'import sys; assert sys.flags.isolated' ",
    "options in one word": "python3 -Wignore -c pass",
    "a file that nobody closed": 'python3 -c \'f = open("out", "w"); f.write("kept")\' && grep -q kept out',
    "work at the end": 'python3 -c \'import atexit; atexit.register(open, "out", "w")\' && test -f out',
    "a thread": "python3 -c 'import threading, pathlib; threading.Thread(target=pathlib.Path(\"out\").touch).start()' && test -f out",
    "another program": 'python3 -c \'import subprocess, sys; subprocess.run(["python3", "-c", "import os; os._exit(4)"]).returncode == 4 or sys.exit(1)\'',
    "in the background": "python3 -c 'import time; time.sleep(60)' & kill $!; if wait $!; then exit 1; fi; python3 -c pass",
    "its own end as another program": 'python3 -c \'import os; os.execlp("true", "true"); print(1)\'',
    "its own end as another program that fails": 'code=0; python3 -c \'import os; os.execlp("sh", "sh", "-c", "exit 3")\' || code=$?; test $code = 3',
    "one that it leaves behind": 'python3 -c \'import os, time\nif not os.fork():\n    os.close(1); os.close(2); os.execlp("sleep", "sleep", "9")\'',
    "a signal": "code=0; python3 -c 'import os; os.kill(os.getpid(), 15)' || code=$?; test $code = 143",
    "an interrupt": "python3 -c 'import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: print(1)' | grep -q 1",
    "an interrupt that nobody catches": "code=0; python3 -c 'import os; os.kill(os.getpid(), 2)' 2>said || code=$?; test $code = 130 && grep -q KeyboardInterrupt said",
    "a signal of its own": 'mkfifo on; python3 -c \'import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7)); open("on", "w").close(); time.sleep(60)\' & cat on; kill -USR1 $!; code=0; wait $! || code=$?; test $code = 7',
    "killed": 'mkfifo on; python3 -c \'import time; open("on", "w").close(); time.sleep(60)\' & cat on; kill -9 $!; ! wait $!',
    "ended by others": 'mkfifo on; python3 -c \'import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); open("on", "w").close(); time.sleep(60)\' & cat on; kill $!; code=0; wait $! || code=$?; test $code = 7',
    "a folder": "mkdir tool2 && echo 'print(4)' > tool2/__main__.py && python3 -I tool2 | grep -q 4",
    "words with blanks": "python3 -c 'import sys; assert sys.argv[1:] == [\"a  b\", \"*\", \"\"]' 'a  b' '*' ''",
    "what is not there": "! command -v python9.99",
    "nothing more in its environment": "python3 -c 'import os; assert not [name for name in os.environ if \"mimir\" in name.lower()]'",
    "tests": "printf 'def test_it():\\n    pass\\n' > test_it.py && pytest -q -p no:cacheprovider | grep -q '1 passed'",
    "a linter that ends itself": "mkdir mypy && echo 'import os; os._exit(0)' > mypy/__main__.py && python3 -m mypy; echo done",
    **{
        name: " ".join(["python3", *(f"'{w}'" for w in words)])
        for name, words in HONEST.items()
        if "'" not in "".join(words)
    },
}


BY_PATH = {
    **{
        name: line.replace("python3 ", f"{PYTHON} ")
        for name, line in HARMLESS.items()
        if "python3 " in line
    },
    "a way to modules": f'PYTHONPATH=src:$PYTHONPATH:lib {PYTHON} -c \'import os, sys; assert {{"src", "lib"}} < set(os.environ["PYTHONPATH"].split(":"))\'',
    "no way to modules": f"{PYTHON} -c 'import sys; assert not [one for one in sys.path if one.endswith(\"/site\")]'",
    "a module that all import": f'mkdir own && echo \'open("out", "w")\' > own/sitecustomize.py && PYTHONPATH=$PYTHONPATH:own {PYTHON} -c pass && test -f out',
}


@pytest.mark.parametrize("line", HARMLESS.values(), ids=HARMLESS.keys())
def test_program_may_do_and_end_as_it_likes(tmp_path: Path, line: str):
    run_harmless(tmp_path, line)


@pytest.mark.parametrize("line", BY_PATH.values(), ids=BY_PATH.keys())
def test_so_may_one_whose_python_is_named_by_its_path(tmp_path: Path, line: str):
    run_harmless(tmp_path, line)


def run_harmless(where: Path, line: str) -> None:
    write_files(where, FILES)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    ran = run_in(where, with_shims(("bash", "-c", f"set -e\n{line}")), path)

    assert ran.returncode == 0, (ran.stdout, ran.stderr)


def run_in(
    where: Path, argv: tuple[str, ...], path: str = "/usr/bin:/bin"
) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": path, "HOME": str(where), **environment(argv)}
    return subprocess.run(
        argv,
        cwd=where,
        env=env,
        check=False,
        capture_output=True,
        timeout=60,
        preexec_fn=_as_the_launcher_does,
    )


def _as_the_launcher_does() -> None:
    """Whoever started the tests in the background has them ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c pass; [ $(command -v python3) = HERE/python3 ]",
        "HERE/python3 -c 'import os; assert \"PYTHONPATH\" not in os.environ'",
        'python3 -c \'import shutil; assert shutil.which("python3") == "HERE/python3"\'',
    ],
)
def test_what_cannot_be_run_with_shims_is_taken_as_it_is(tmp_path: Path, line: str):
    """Such a check is red with shims, whether they watch or not."""
    (tmp_path / "python3").symlink_to(sys.executable)
    argv = ("sh", "-c", line.replace("HERE", str(tmp_path)))
    ways = (argv, with_shims(argv), with_shims(argv, plain=True))

    codes = [run_in(tmp_path, argv, f"{tmp_path}:/usr/bin:/bin").returncode for argv in ways]

    assert codes == [0, NOT_ENDED, NOT_ENDED]


@pytest.mark.parametrize("python", ["python3", PYTHON], ids=["by its name", "by its path"])
def test_ended_program_is_told_from_one_that_failed(tmp_path: Path, python: str):
    write_files(tmp_path, {"a.py": "import os\n\nos._exit(0)\n"})

    line = ("sh", "-c", f"{python} a.py; exit $?")

    assert run_in(tmp_path, with_shims(line)).returncode == supervisor.OPEN
    assert run_in(tmp_path, with_shims(line, plain=True)).returncode == 0


@pytest.mark.parametrize("name", ["python9.9", "pytest"])
def test_manager_of_versions_is_not_led_back_to_itself(tmp_path: Path, name: str):
    """It stands on the PATH under the name of a Python or of its program, and looks for that elsewhere."""
    here = tmp_path / "bin"
    text = f'#!/bin/sh\nPATH=$(echo "$PATH" | sed "s#{here}:##")\nexec {name} "$@"\n'
    write_files(here, {name: text})
    (here / name).chmod(0o755)

    argv = with_shims(("sh", "-c", f"{name} a.py; exit $?"))

    assert run_in(tmp_path, argv, f"{here}:/usr/bin:/bin").returncode == NOT_ENDED


def test_tool_of_the_machine_may_end_as_it_likes(tmp_path: Path):
    write_files(tmp_path, {"bin/tool": f"#!{PYTHON}\nimport os\n\nos._exit(0)\n", "work/a.py": ""})
    (tmp_path / "bin/tool").chmod(0o755)

    line = with_shims(("sh", "-c", "../bin/tool; exit $?"))

    assert run_in(tmp_path / "work", line).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ("grep", "-q", "python", "x"),
        ("python", "-m", "pytest", "-q"),
        ("python", "-m", "json.tool", "x"),
        ("uv", "run", "pytest"),
        ("bash", "-c", "cd x && python -m pytest && grep -q x y"),
    ],
)
def test_what_tells_of_its_end_or_only_reads_is_not_watched(argv: tuple[str, ...]):
    assert not may_be_ended(argv)
