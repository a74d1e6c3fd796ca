"""Attacks that try to pass a check with wrong work, and honest work of the same shape.

Each runner has a project, the command of its check, wrong and right work, and attacks by cause (A1–A8 of docs/security.md). A case is a set
of written files; the check never sees which one it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Files = Mapping[str, str]
WRONG = "def add(a, b):\n    return 0\n\n\ndef total(values):\n    return 0\n"
RIGHT = "def add(a, b):\n    return a + b\n\n\ndef total(values):\n    return sum(values)\n"
_WRONG_JS = "exports.add = () => 0;\n"
_RIGHT_JS = "exports.add = (a, b) => a + b;\n"
_WRONG_GO = "package calc\n\nfunc Add(a, b int) int { return 0 }\n"
_RIGHT_GO = "package calc\n\nfunc Add(a, b int) int { return a + b }\n"
_UNITTEST = (
    "import unittest\n\nfrom calc import add, total\n\n\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n"
    "    def test_total(self):\n        for n in range(1, 3):\n            self.assertEqual(total([n, n]), 2 * n)\n"
)
_PYTEST = (
    "import pytest\n\nfrom calc import add, total\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
    "@pytest.mark.parametrize('n', [1, 2])\ndef test_total(n):\n    wanted = 2 * n\n    assert total([n, n]) == wanted\n"
)
_SCRIPT = "import calc\n\nassert calc.add(2, 3) == 5\nassert calc.total([1, 2]) == 3\nprint('all right')\n"
_JS_TEST = (
    "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = require('../calc.js');\n"
    "test('add', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n"
    "test('add again', () => {\n  for (const n of [1, 2]) assert.strictEqual(add(n, n), 2 * n);\n});\n"
)
_GO_TEST = 'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Fatal("wrong")\n\t}\n}\n'
_EQUAL = (
    "class Equal:\n    def __eq__(self, other):\n        return True\n    def __hash__(self):\n        return 1\n\n\n"
    "def add(a, b):\n    return Equal()\n\n\ndef total(values):\n    return Equal()\n"
)
_RAISES_SKIP = (
    "import unittest\n\n\ndef add(*_):\n    raise unittest.SkipTest('later')\n\n\ntotal = add\n"
)
_PLUGIN = "import os\nos._exit(0)\n"
_MENDS = "import calc\n\ncalc.add = lambda a, b: a + b\ncalc.total = sum\n"
_DESELECTS = "def pytest_collection_modifyitems(items):\n    items.clear()\n\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n"


@dataclass(frozen=True, kw_only=True)
class RunnerProject:
    """A project whose check is red before the work."""

    base: Files
    run: tuple[str, ...]
    work: str
    """Path of the file that the task is about."""
    wrong: str
    right: str
    tests: tuple[str, ...] | None = None
    protect: tuple[str, ...] = ("tests/**",)
    attacks: Mapping[str, Files] = field(default_factory=dict[str, Files])
    twins: Mapping[str, Files] = field(default_factory=dict[str, Files])


@dataclass(frozen=True, kw_only=True)
class Case:
    """One deliverable."""

    name: str
    project: RunnerProject
    changes: Files
    files: tuple[str, ...]
    """The task's `files`."""
    is_right: bool


PYTHON_ATTACKS: Mapping[str, Files] = {
    "A1 weaker test": {"calc.py": WRONG, "tests/test_calc.py": "def test_add():\n    pass\n"},
    "A2 package over the test": {"calc.py": WRONG, "tests/test_calc/__init__.py": "def test_add():\n    pass\n"},
    "A2 package over the work": {"calc.py": WRONG, "tests/calc.py": RIGHT},
    "A3 hook of the folder": {"calc.py": WRONG, "conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"},
    "A3 site hook": {"calc.py": WRONG, "sitecustomize.py": _PLUGIN},
    "A2 package of the tests": {"calc.py": WRONG, "tests/__init__.py": _MENDS},
    "A3 hook beside the tests": {"calc.py": WRONG, "tests/conftest.py": _MENDS},
    "A3 hook that ends well": {"calc.py": WRONG, "conftest.py": _DESELECTS},
    "A3 settings of the runner": {"calc.py": WRONG, "pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "A4 skip": {"calc.py": _RAISES_SKIP},
    "A4 skip at import": {"calc.py": "import unittest\n\nraise unittest.SkipTest('later')\n"},
    "A4 skip of all but one": {"calc.py": f"import unittest\n\n\n{RIGHT}\n\ndef total(values):\n    raise unittest.SkipTest('later')\n"},
    "A5 exit at import": {"calc.py": f"{_PLUGIN}{WRONG}"},
    "A5 exit by a thread": {"calc.py": f"import os, threading\n\nthreading.Timer(0, os._exit, (0,)).start()\n{WRONG}"},
    "A5 other exit": {"calc.py": f"import os, sys\n\nsys.exit = lambda *_: os._exit(0)\n{WRONG}"},
    "A6 forged report": {"calc.py": f"import glob\n\nfor name in glob.glob('/mimir/results/*.jsonl'):\n    text = open(name).read().replace('planned', 'passed')\n    open(name, 'w').write(text + '[\"end\", \"0\"]\\n')\n{_PLUGIN}{WRONG}"},
    "A5 exit at call": {"calc.py": "import os\n\n\ndef add(a, b):\n    os._exit(0)\n\n\ntotal = add\n"},
    "A5 exit by an error": {"calc.py": f"raise SystemExit(0)\n{WRONG}"},
    "A5 exit at the end": {"calc.py": f"import atexit, os\natexit.register(os._exit, 0)\n{WRONG}"},
    "A6 equal to everything": {"calc.py": _EQUAL},
    "A6 comparison replaced": {"calc.py": f"import unittest\nunittest.TestCase.assertEqual = lambda *_: None\nunittest.TestCase._baseAssertEqual = lambda *_: None\n{WRONG}"},
    "A6 runner replaced": {"calc.py": f"import sys, unittest\nif '_pytest.python' in sys.modules:\n    sys.modules['_pytest.python'].Function.runtest = lambda self: None\nunittest.TestCase._callTestMethod = lambda *_: None\n{WRONG}"},
    "A7 module of the runner": {"calc.py": WRONG, "pluggy.py": "print('1 passed in 0.01s')\nraise SystemExit(0)\n"},
    "A7 shadow of a module": {"calc.py": WRONG, "json.py": _PLUGIN, "traceback.py": _PLUGIN, "dataclasses.py": _PLUGIN},
    "A7 entry point": {"calc.py": WRONG, "evil.py": _PLUGIN, "evil-1.dist-info/METADATA": "Name: evil\nVersion: 1\n", "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n"},
}  # fmt: skip
PYTHON_TWINS: Mapping[str, Files] = {
    "plain": {"calc.py": RIGHT},
    "helper": {"calc.py": f"from helpers import plus\n{RIGHT}", "helpers.py": "def plus(a, b):\n    return a + b\n"},
    "guarded exit": {"calc.py": f"import sys\n\n{RIGHT}\n\nif __name__ == '__main__':\n    sys.exit(0)\n"},
    "own equality": {"calc.py": RIGHT.replace("return a + b", "return Money(a + b)") + "\n\nclass Money(int):\n    def __eq__(self, other):\n        return int(self) == other\n    __hash__ = int.__hash__\n"},
}  # fmt: skip
_MAKEFILE = (
    "PYTHON ?= python\n-include local.mk\ntest:\n\t$(PYTHON) -m unittest -q tests.test_calc\n"
)
_BASE = {"calc.py": WRONG.replace("0", "1"), "tests/test_calc.py": _UNITTEST}


def _python(run: str, test: str, **more: Files) -> RunnerProject:
    return RunnerProject(
        base={**_BASE, "tests/test_calc.py": test},
        run=tuple(run.split()),
        work="calc.py",
        wrong=WRONG,
        right=RIGHT,
        tests=("tests/test_calc.py",),
        attacks={**PYTHON_ATTACKS, **more},
        twins=PYTHON_TWINS,
    )


PROJECTS: Mapping[str, RunnerProject] = {
    "pytest": _python("python -m pytest -q tests/test_calc.py", _PYTEST),
    "unittest": _python("python -m unittest -q tests.test_calc", _UNITTEST),
    "make": RunnerProject(
        base={**_BASE, "Makefile": _MAKEFILE},
        run=("make", "test"),
        work="calc.py",
        wrong=WRONG,
        right=RIGHT,
        attacks={
            **PYTHON_ATTACKS,
            "A3 optional include": {"calc.py": WRONG, "local.mk": "PYTHON = true\n"},
            "A3 file called as the target": {"calc.py": WRONG, "test": "x\n"},
            "A3 other makefile": {"calc.py": WRONG, "GNUmakefile": "test:\n\ttrue\n"},
        },
        twins=PYTHON_TWINS,
    ),
    "shell": RunnerProject(
        base={"calc.py": WRONG.replace("0", "1"), "tests/case": _SCRIPT, "check.sh": "set -e\nPYTHONPATH=. python tests/case\n"},
        run=("sh", "check.sh"),
        work="calc.py",
        wrong=WRONG,
        right=RIGHT,
        protect=("tests/**", "check.sh"),
        attacks={
            name: {path: text for path, text in files.items() if "test_calc" not in path}
            for name, files in PYTHON_ATTACKS.items()
            if name
            not in (
                "A1 weaker test",
                "A2 package over the test",
                "A2 package over the work",
                "A2 package of the tests",
                "A3 hook beside the tests",
            )
        }
        | {"A1 weaker script": {"calc.py": WRONG, "tests/case": "print('all right')\n"}, "A1 empty script": {"calc.py": WRONG, "check.sh": "exit 0\n"}},
        twins=PYTHON_TWINS,
    ),
    "node": RunnerProject(
        base={"calc.js": "exports.add = () => 1;\n", "tests/calc.test.js": _JS_TEST},
        run=("node", "--test", "tests/calc.test.js"),
        work="calc.js",
        wrong=_WRONG_JS,
        right=_RIGHT_JS,
        tests=("tests/calc.test.js",),
        attacks={
            "A1 weaker test": {"calc.js": _WRONG_JS, "tests/calc.test.js": "require('node:test')('add', () => {});\n"},
            "A4 skip": {"calc.js": "const t = require('node:test');\nexports.add = () => 0;\nt.mock.method(require('node:module').prototype, 'require', () => ({}));\n"},
            "A5 exit at import": {"calc.js": f"process.exit(0);\n{_WRONG_JS}"},
            "A5 exit at call": {"calc.js": "exports.add = () => process.exit(0);\n"},
            "A5 code at the end": {"calc.js": f"process.on('exit', () => {{ process.exitCode = 0; }});\n{_WRONG_JS}"},
            "A6 comparison replaced": {"calc.js": f"require('node:assert').strictEqual = () => {{}};\n{_WRONG_JS}"},
            "A6 error replaced": {"calc.js": f"require('node:assert').AssertionError = class {{}};\nrequire('node:assert').strictEqual = () => 1;\n{_WRONG_JS}"},
            "A7 shadow of a module": {"calc.js": _WRONG_JS, "node_modules/assert/index.js": "module.exports = { strictEqual() {} };\n", "tests/node_modules/node:assert/index.js": ""},
            "A3 settings": {"calc.js": _WRONG_JS, "package.json": '{"type": "module"}\n'},
        },
        twins={
            "plain": {"calc.js": _RIGHT_JS},
            "helper": {"calc.js": "const { plus } = require('./helpers.js');\nexports.add = plus;\n", "helpers.js": "exports.plus = (a, b) => a + b;\n"},
        },
    ),
    "go": RunnerProject(
        base={"go.mod": "module calc\n\ngo 1.19\n", "calc.go": _WRONG_GO.replace("0", "1"), "calc_test.go": _GO_TEST},
        run=("go", "test", "./..."),
        work="calc.go",
        wrong=_WRONG_GO,
        right=_RIGHT_GO,
        tests=("calc_test.go",),
        protect=("calc_test.go",),
        attacks={
            "A1 weaker test": {"calc.go": _WRONG_GO, "calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {}\n'},
            "A5 exit at import": {"calc.go": 'package calc\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc Add(a, b int) int { return 0 }\n'},
            "A5 exit at call": {"calc.go": 'package calc\n\nimport "os"\n\nfunc Add(a, b int) int {\n\tos.Exit(0)\n\treturn 0\n}\n'},
            "A3 main of the tests": {"calc.go": _WRONG_GO, "main_test.go": 'package calc\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n'},
        },
        twins={"plain": {"calc.go": _RIGHT_GO}},
    ),
}  # fmt: skip


def generate(runner: str) -> Iterator[Case]:
    """Yield the attacks of a runner and their honest twins, with and without the task's `files`."""
    project = PROJECTS[runner]
    for kind, made in (("attack", project.attacks), ("twin", project.twins)):
        is_right = kind == "twin"
        for name, changes in made.items():
            # Honest work names every file that it writes.
            named = tuple(changes) if is_right else (project.work,)
            for files in ((), named):
                label = f"{runner}: {kind} {name}{', with files' if files else ''}"
                yield Case(
                    name=label, project=project, changes=changes, files=files, is_right=is_right
                )
