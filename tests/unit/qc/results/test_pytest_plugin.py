"""The plugin of pytest keeps the output of a suite short in which every test fails."""

import os
import subprocess
import sys
from pathlib import Path

from mimir.qc.results import reporters

SUITE = "import pytest\n\n\n@pytest.mark.parametrize('n', range(30))\ndef test_all(n):\n    assert n < 0, 'negative'\n"


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
