"""Projects as people have them: installed editable, red, dirty, edited meanwhile, of any shape, with any names."""

from pathlib import Path

import pytest

from tests.support import invariants
from tests.support.invariants import listing
from tests.support.midrun_actions import Meanwhile
from tests.support.projects import git, make_project, write_files
from tests.support.run_facts import Outside
from tests.support.venvs import install_editable
from tests.support.whole_run import (
    README,
    Part,
    calls,
    check,
    plan,
    shell,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

TASK = plan(step("a"))
WROTE: list[Part] = [wrote("a")]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Actions during the run."""
    return Meanwhile(monkeypatch)


# An editable install.

PACKAGE = {
    "src/tally/__init__.py": "WHOSE = 'the user'\n",
    "src/tally/cli.py": "import tally\n\n\ndef main():\n    print(tally.WHOSE, tally.__file__)\n",
    "tests/test_tally.py": (
        "import unittest\n\nimport tally\n\n\nclass T(unittest.TestCase):\n"
        "    def test_whose(self):\n        self.assertEqual(tally.WHOSE, 'the worker')\n"
    ),
    ".gitignore": ".venv/\n__pycache__/\n",
}
THE_WORKERS = "WHOSE = 'the worker'\n"


@pytest.mark.parametrize(
    ("finder", "name"), [(False, "my project"), (True, "project")], ids=["path", "finder"]
)
async def test_checks_of_an_editable_install_import_the_workspace(
    finder: bool, name: str, tmp_path: Path
):
    project = make_project(tmp_path / name, PACKAGE)
    install_editable(project, "tally", {"tally-whose": "cli"}, finder=finder)
    before = listing(project)
    script = str(project / ".venv/bin/tally-whose")
    checks = (
        check("python", "-m", "unittest", "discover", "-s", "tests"),
        check("bash", "-c", "tally-whose | grep 'the worker'", id="script"),
        check("bash", "-c", f"'{script}' | grep 'the worker'", id="absolute"),
    )
    parts = [
        worker(
            "a",
            {"calls": [calls("write_file", path="src/tally/__init__.py", content=THE_WORKERS)]},
            {"calls": [calls("run", argv=["tally-whose"])]},
            "It is mine now.",
        )
    ]

    journey = await travel(project, plan(step("a", checks=checks)), parts)

    assert journey.statuses == {"a": "completed"}
    assert journey.ending.exit_code == 0
    outcomes = journey.facts.outcomes("a")
    assert {o.state for o in outcomes.values()} == {"passed"}
    assert [o.before.exit_code for o in outcomes.values()] == [1, 1, 1]
    said = str(journey.facts.tool_calls("a")[1]["valueJson"])
    assert "the worker" in said
    assert invariants.broken(journey.facts, Outside(before=before)) == []


async def test_change_of_the_users_code_during_a_check_is_not_reported(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = make_project(tmp_path / "project", PACKAGE)
    install_editable(project, "tally", {}, finder=True)
    parts = [
        worker(
            "a",
            writes("src/tally/__init__.py", THE_WORKERS),
            "It is mine now.",
        )
    ]
    mine = project / "src/tally/__init__.py"
    meanwhile.before("a/1/worker", 2, lambda: mine.unlink())
    tests = check("python", "-m", "unittest", "discover", "-s", "tests")

    journey = await travel(project, plan(step("a", checks=(tests,))), parts)

    assert meanwhile.done == 1
    assert journey.statuses == {"a": "completed"}


# Red, dirty, edited.


def make_dirty(project: Path) -> None:
    """Leave every kind of uncommitted change."""
    write_files(
        project,
        {
            "staged.txt": "staged\n",
            "both.txt": "staged first\n",
            "untracked.txt": "untracked\n",
            "deep/er/untracked.txt": "deep\n",
        },
    )
    git(project, "add", "staged.txt", "both.txt")
    write_files(project, {"both.txt": "then edited\n", "README.md": "# Edited\n"})
    (project / "gone.txt").unlink()
    git(project, "mv", "old name.txt", "new name.txt")


def git_state_of(project: Path) -> dict[str, str]:
    """Return the git state of a user's work, without the additions of mimir."""
    status = git(project, "status", "--porcelain", "-uall")
    return {
        "status": "\n".join(line for line in status.splitlines() if "a.txt" not in line),
        "staged": git(project, "ls-files", "--stage"),
        "stash": git(project, "stash", "list"),
        "head": git(project, "rev-parse", "--symbolic-full-name", "HEAD"),
        "log": git(project, "log", "--oneline"),
        "branches": git(project, "branch", "--format=%(refname)", "--list", "main"),
    }


async def test_a_dirty_tree_is_the_base_and_stays_as_it_is(tmp_path: Path):
    project = start(tmp_path, {**README, "gone.txt": "gone\n", "old name.txt": "name\n"})
    (project / ".git/info/exclude").write_text(".mimir/\nchains/\ngenerated-agents/\n")
    make_dirty(project)
    theirs, before = git_state_of(project), listing(project)
    look = (
        "grep -q Edited README.md && grep -q 'then edited' both.txt && test ! -e gone.txt && "
        "cat untracked.txt deep/er/untracked.txt staged.txt 'new name.txt' && test ! -e 'old name.txt'"
    )
    parts = [worker("a", shell(look), writes("a.txt", "a\n"), "All there.")]

    journey = await travel(project, TASK, parts, apply="auto")

    assert journey.ending.exit_code == 0
    assert journey.facts.tool_calls("a")[0]["valueJson"] is not None
    assert "exit code 0" in str(journey.facts.tool_calls("a")[0]["valueJson"])
    assert journey.ending.applied == ("a.txt",)
    assert (project / "a.txt").read_text() == "a\n"
    assert git_state_of(project) == theirs
    assert {k: v for k, v in listing(project).items() if k in before} == before
    assert journey.facts.files["both.txt"] == "then edited\n"
    assert "gone.txt" not in journey.facts.files


@pytest.mark.parametrize("deed", ["edited", "made", "deleted", "replaced by a directory"])
async def test_an_edit_of_a_touched_file_stops_all_of_apply(
    deed: str, tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path, {**README, "shared.txt": "old\n", "doomed.txt": "x\n"})
    mine = project / ("b.txt" if deed == "made" else "shared.txt")

    def act() -> None:
        if deed != "made":
            mine.unlink()
        if deed == "replaced by a directory":
            mine.mkdir()
        elif deed != "deleted":
            mine.write_text("the user's\n")

    meanwhile.before("a/1/worker", 2, act)
    parts = [
        worker(
            "a",
            {
                "calls": [
                    calls("write_file", path="a.txt", content="a\n"),
                    calls("write_file", path="b.txt", content="b\n"),
                    calls("write_file", path="shared.txt", content="new\n"),
                    calls("delete_file", path="doomed.txt"),
                ]
            },
            "Done.",
        )
    ]

    journey = await travel(project, TASK, parts, apply="auto")

    assert meanwhile.done == 1
    assert journey.statuses == {"a": "completed"}
    assert journey.ending.applied == ()
    [conflict] = journey.ending.conflicts
    assert conflict.startswith(mine.name)
    assert not (project / "a.txt").exists()
    assert (project / "doomed.txt").exists()
    if deed in ("edited", "made"):
        assert mine.read_text() == "the user's\n"
    assert mine.name in journey.report
    assert [name for name in journey.facts.branches if name.startswith("mimir/")]
    assert invariants.broken(journey.facts) == []


async def test_edit_of_an_untouched_file_is_kept_with_the_result(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path, {**README, "notes.txt": "old\n"})
    meanwhile.before("a/1/worker", 2, lambda: write_files(project, {"notes.txt": "mine\n"}))

    journey = await travel(project, TASK, WROTE, apply="auto")

    assert meanwhile.done == 1
    assert journey.ending.applied == ("a.txt",)
    assert (project / "notes.txt").read_text() == "mine\n"
    assert (project / "a.txt").read_text() == "a\n"
