"""A passed check is required to the end of the run: a later task may not break its work and change the check files to hide that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.plan import Check, Task
from tests.support import invariants
from tests.support.whole_run import (
    Journey,
    Part,
    Turn,
    check,
    holds,
    plan,
    start,
    step,
    travel,
    worker,
    writes,
)

TWO = "def test_two():\n    assert double(2) == 4\n"
THREE = "def test_three():\n    assert double(3) == 6\n"
ASKED = f"from a import double\n\n\n{TWO}\n\n{THREE}"
RIGHT = "def double(x):\n    return x * 2\n"
WRONG = "def double(x):\n    return 4\n"
PYTEST = check("python", "-m", "pytest", "-q", "test_a.py")
LEAVE_OUT = "--deselect test_a.py::test_three"

first = step("a", files=("a.py", "test_a.py"), checks=(PYTEST,))
did_first = worker("a", writes("a.py", RIGHT), "Done.")


def second(**more: object) -> Task:
    """Return a task whose own check looks at nothing but its own file."""
    return step("b", "a", **{"checks": (holds("b.txt", "b"),), **more})


def did_second(*turns: Turn) -> Part:
    return worker("b", writes("b.txt", "b\n"), *turns, "Done.")


async def go(
    tmp_path: Path,
    tasks: Sequence[Task],
    parts: Sequence[Part],
    files: Mapping[str, str] | None = None,
) -> Journey:
    project = {"test_a.py": ASKED, **(files or {})}
    journey = await travel(start(tmp_path, project), plan(*tasks), parts, workers=2)
    assert invariants.broken(journey.facts) == []
    return journey


HIDING: Mapping[str, str] = {
    "test_a.py": f"from a import double\n\n\n{TWO}",
    "pytest.ini": f"[pytest]\naddopts = {LEAVE_OUT}\n",
    "pyproject.toml": f"[tool.pytest.ini_options]\naddopts = {LEAVE_OUT!r}\n",
    "conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n",
}
"""Path → text; each alone would hide a broken function."""
HIDES = [writes(path, text) for path, text in HIDING.items()]


def unchanged(journey: Journey) -> bool:
    """True if no file that hides anything is on the run branch."""
    files = journey.facts.files
    return files["test_a.py"] == ASKED and not files.keys() & (HIDING.keys() - {"test_a.py"})


async def test_task_that_breaks_another_task_and_hides_it_stops_the_run(tmp_path: Path):
    parts = [did_first, did_second(writes("a.py", WRONG), *HIDES)]

    journey = await go(tmp_path, [first, second()], parts)

    assert journey.statuses == {"a": "completed", "b": "completed"}
    assert (journey.ending.exit_code, journey.ending.outcome) == (1, "failed")
    [gate] = journey.facts.events_of_kind(EventKind.GATE_FAILED)
    assert gate.data["red"] == [{"task": "a", "check": "unit", "merge": "b"}]
    assert journey.ending.applied == ()
    assert unchanged(journey)


async def test_files_of_a_check_may_change_where_nothing_is_hidden(tmp_path: Path):
    journey = await go(tmp_path, [first, second()], [did_first, did_second(*HIDES)])

    assert journey.ending.outcome == "completed"
    assert unchanged(journey)


async def test_planned_change_of_earlier_tests_and_fixtures_is_accepted(tmp_path: Path):
    """The second task is to change the first one's code, its test and a fixture of both."""
    new = "from a import double\n\n\ndef test_words(twice):\n    assert double('a') == twice\n"
    fixture = "import pytest\n\n\n@pytest.fixture\ndef twice():\n    return 'a a'\n"
    parts = [
        did_first,
        did_second(
            writes("a.py", "def double(x):\n    return f'{x} {x}'\n"),
            writes("test_a.py", new),
            writes("conftest.py", fixture),
        ),
    ]
    asked = second(files=("b.txt", "a.py", "test_a.py", "conftest.py"))

    journey = await go(tmp_path, [first, asked], parts)

    assert journey.ending.outcome == "completed"


async def test_new_test_may_use_a_fixture_of_its_own_task(tmp_path: Path):
    """The first one's check collects everything; the second adds a test with a fixture, and changes an old one to use it."""
    fixture = "import pytest\n\n\n@pytest.fixture\ndef four():\n    return 4\n"
    wider = ASKED.replace("def test_two():", "def test_two(four):").replace("== 4", "== four")
    everything = check("python", "-m", "pytest", "-q")
    parts = [
        did_first,
        did_second(
            writes("conftest.py", fixture),
            writes("test_b.py", "def test_four(four):\n    assert four == 4\n"),
            writes("test_a.py", wider),
        ),
    ]
    tasks = [
        step("a", files=("a.py",), checks=(everything,)),
        second(files=("**", "test_a.py", "conftest.py")),
    ]

    journey = await go(tmp_path, tasks, parts)

    assert journey.ending.outcome == "completed"


WANTED = """import json
import pathlib

from a import double


def test_wanted():
    wanted = pathlib.Path(__file__).parent / "wanted.json"
    assert [double(n) for n in (2, 3)] == json.loads(wanted.read_text())
"""
JUDGED = {"tests/test_wanted.py": WANTED, "tests/wanted.json": "[4, 6]\n", "conftest.py": ""}
RUFF = check("python", "-m", "ruff", "check", "--no-cache", "a.py")
BY_MORE = {
    "an expected result": (
        check("python", "-m", "pytest", "-q", "tests/test_wanted.py"),
        writes("a.py", WRONG),
        writes("tests/wanted.json", "[4, 4]\n"),
    ),
    "rules of a linter": (
        replace(RUFF, kind="hold"),
        writes("a.py", f"import os\n\n\n{RIGHT}"),
        writes("ruff.toml", "lint.ignore = ['F401']\n"),
    ),
}


@pytest.mark.parametrize(("judge", "breaks", "hides"), BY_MORE.values(), ids=BY_MORE.keys())
async def test_check_files_of_one_task_weakened_by_another_stop_the_run(
    judge: Check, breaks: Turn, hides: Turn, tmp_path: Path
):
    first = step("a", files=("a.py",), checks=(judge,))

    journey = await go(tmp_path, [first, second()], [did_first, did_second(breaks, hides)], JUDGED)

    assert journey.statuses == {"a": "completed", "b": "completed"}
    assert (journey.ending.exit_code, journey.ending.outcome) == (1, "failed")
    [gate] = journey.facts.events_of_kind(EventKind.GATE_FAILED)
    assert gate.data["red"] == [{"task": "a", "check": "unit", "merge": "b"}]


async def test_tests_may_be_helped_more_and_skip_more_later(tmp_path: Path):
    """The second task adds a test with a helper that others use too, and one that cannot run here."""
    helped = "from helpers import same\n\nfrom a import double\n\n\ndef test_helped():\n    same(double(2), 4)\n"
    lame = "import pytest\n\n\n@pytest.mark.skip(reason='no such device')\ndef test_device():\n    assert False\n"
    same = "def same(a, b):\n    assert a == b\n"
    files = {"tests/helpers.py": same, "tests/test_helped.py": helped, "conftest.py": ""}
    parts = [
        did_first,
        did_second(
            writes("tests/helpers.py", f"{same}\n\ndef four():\n    return 4\n"),
            writes("tests/test_more.py", helped.replace("same\n", "four, same\n", 1).replace(", 4)", ", four())")),
            writes("tests/test_device.py", lame),
        ),
    ]  # fmt: skip
    tasks = [
        step("a", files=("a.py",), checks=(check("python", "-m", "pytest", "-q"),)),
        second(files=("b.txt", "tests/*", "tests/helpers.py")),
    ]

    journey = await go(tmp_path, tasks, parts, files)

    assert journey.ending.outcome == "completed"
