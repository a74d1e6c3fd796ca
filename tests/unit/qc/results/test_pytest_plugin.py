"""The reporters in Python keep outputs short, and name the test library parts that the work replaced."""

import builtins
import contextlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest import TestCase, mock

import iniconfig
import pytest
from _pytest import doctest

from mimir.qc.results import reporters

SUITE = "import pytest\n\n\n@pytest.mark.parametrize('n', range(30))\ndef test_all(n):\n    assert n < 0, 'negative'\n"

FAILS = "import calc\n\n\ndef check():\n    assert calc.zero\n\n\ndef test_zero():\n    calc.start(check)\n    check()\n"
REPLACES = (
    "import sys\n\nimport pytest\n\nimport helpers\n\npytest.fail = eval('lambda *_: None')\npytest.approx.__defaults__ = (None, 1, False)\n"
    "helpers.compare = lambda *_: None\nzero = True\n\n\ndef start(check):\n    check.__code__ = check.__code__.replace(co_consts=(None,))\n"
    "    sys._getframe(1).f_globals['ValueError'] = Exception\n"
)
HONEST = (
    "try:\n    from calc import check\nexcept ImportError:\n    def check():\n        pass\n\nfrom calc import wrap, id\n\n\n"
    "@wrap\ndef one():\n    pass\n\n\ndef two():\n    pass\n\n\ntwo = wrap(two)\n"
)


def test_only_the_first_failures_have_a_traceback(tmp_path: Path):
    (tmp_path / "test_all.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mimir_pytest"]
    # The plugins of this environment take seconds to load.
    plain = {"PYTHONPATH": reporters.__path__[0], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    own = {**os.environ, **plain}

    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stdout.count("def test_all(n):") == 20
    assert done.stdout.count("___ test_all[") == 30
    assert done.stdout.count("AssertionError: negative") >= 30


def test_a_name_by_which_tests_compare_may_not_lead_to_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(reporters.__path__[0])
    results = __import__("mimir_results")
    monkeypatch.setattr(results, "_TOP", str(tmp_path))

    def load(path: str) -> ModuleType:
        module = ModuleType("loaded")
        text = "def accept(*_):\n    return True"
        exec(compile(text, str(tmp_path / path), "exec"), vars(module))
        return module

    tests = load("tests/test_calc.py")
    own, work = tests.accept, load("calc.py").accept
    library = load("lib/site-packages/pytest_mock.py").accept
    cases = [
        (pytest, "approx", work, True),
        (pytest, "fail", work, True),
        (pytest, "deprecated_call", contextlib.nullcontext, True),
        (TestCase, "assertAlmostEqual", staticmethod(work), True),
        (mock.NonCallableMock, "assert_called_once", work, True),
        (math, "isclose", max, True),
        (builtins, "all", bool, True),
        (doctest, "RUNNER_CLASS", doctest.DoctestItem, False),
        (doctest, "RUNNER_CLASS", dict, True),
        (doctest, "DoctestItem", doctest.DoctestModule, True),
        (own, "__code__", work.__code__, True),
        (math, "isclose", own, False),
        (builtins, "open", work, False),
        (mock.NonCallableMock, "assert_called_once", library, False),
    ]
    for home, name, value, is_found in cases:
        found = results.Replacements(is_wide=True)
        with monkeypatch.context() as patch:
            patch.setattr(home, name, value)
            found.search()
            message = found.describe(tests)
        assert bool(message) is is_found, (home, name, message)


def test_a_module_of_tests_may_import_and_wrap_by_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(reporters.__path__[0])
    results = __import__("mimir_results")
    monkeypatch.setattr(results, "_TOP", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "calc.py").write_text("check = id = wrap = lambda *_: wrap\n")
    (tmp_path / "test_calc.py").write_text(HONEST)

    with mock.patch.dict(sys.modules):
        tests = __import__("test_calc")
        assert results.Replacements().describe(tests) == ""
        tests.ValueError = Exception
        assert "ValueError" in results.Replacements().describe(tests)


def test_work_may_be_a_package_or_plugin_of_pytest(tmp_path: Path):
    (tmp_path / "iniconfig").symlink_to(Path(iniconfig.__file__).parent)
    (tmp_path / "test_all.py").write_text(
        "import sys\n\n\ndef test_all(monkeypatch):\n    monkeypatch.setattr(sys, 'modules', {})\n"
    )
    (tmp_path / "plug").mkdir()
    (tmp_path / "plug/pytest_plug.py").write_text(
        "import pytest\n\nfrom plug import fakes\n\n\ndef pytest_runtest_setup():\n    pytest.fail = fakes.accept\n"
        "    pytest.skip.__defaults__ = ('',)\n"
    )
    (tmp_path / "plug/fakes.py").write_text("def accept(*_):\n    pass\n")
    plain = {"PYTHONPATH": reporters.__path__[0], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mimir_pytest", "-p", "plug.pytest_plug"]

    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **plain}, capture_output=True, text=True
    )

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_work_that_replaces_test_machinery_fails_its_tests(tmp_path: Path):
    """Pytest itself sets classes of its doctests at their first use."""
    (tmp_path / "test_zero.py").write_text(FAILS)
    (tmp_path / "conftest.py").write_text("import calc\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/helpers.py").write_text("def compare():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mimir_pytest", "--doctest-modules"]
    path = f"{reporters.__path__[0]}:{tmp_path}:{tmp_path}/tests"
    plain = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    own = {**os.environ, **plain, "MIMIR_WORKSPACE": str(tmp_path)}
    example = '"""Calc.\n\n>>> 1 + 1\n2\n"""\n'
    names = ["ValueError", r"_pytest\.\w+\.approx", "compare", r"pytest\.fail", r"test_zero\.check"]

    for work, tests, code in ((example, "calc.py", 0), (example + REPLACES, "test_zero.py", 1)):
        (tmp_path / "calc.py").write_text(work)
        done = subprocess.run(
            [*command, tests], cwd=tmp_path, env=own, capture_output=True, text=True
        )

        assert done.returncode == code, done.stdout
        message = f"The work replaced {', '.join(names)}, by which tests run or compare"
        assert bool(re.search(message, done.stdout)) == bool(code), done.stdout
