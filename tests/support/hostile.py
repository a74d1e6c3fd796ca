"""A project with a protected test, and the task of a possibly hostile worker."""

from collections.abc import Mapping
from typing import Any

from tests.support.whole_run import README, calls, check

TEST = "import a\n\n\ndef test_it():\n    assert a.VALUE == 1\n"
FILES = {
    **README,
    ".gitignore": ".env\n__pycache__/\n",
    "tests/test_a.py": TEST,
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
}
PROTECTED = check(
    "python",
    "-m",
    "pytest",
    "-q",
    "tests/test_a.py",
    protect=("tests/test_a.py",),
    tests=("tests/test_a.py",),
)
"""The check of such a task: `tests/test_a.py` imports a module that the worker writes."""


def shell(command: str, **more: Any) -> Mapping[str, object]:
    """Return a wish to run a command line."""
    return calls("run", command=command, **more)
