"""Git inside the sandbox shows one commit and its past, and no other work."""

import shutil
from pathlib import Path

import pytest

from mimir.workspace.git import readonly_view as view_module
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory, Place


def bound(place: Place, view: Path) -> Path:
    """Put the view at a workspace as the sandbox does: by a file that leads to it."""
    (place.where / ".git").write_text(f"gitdir: {view}\n")
    return place.where


async def test_git_works_in_a_workspace_over_its_view(place: Place, tmp_path: Path) -> None:
    # A view of its own: outside the sandbox git may write into it.
    where = bound(place, await place.history.view(place.base.commit, tmp_path / "view"))
    write_files(where, {"calc.py": "changed\n", "new.py": "x\n", ".env": "x"})
    # Leading blanks mean something in this format.
    assert git(where, "status", "--porcelain").split("\n") == [" M calc.py", "?? new.py"]
    assert git(where, "log", "--format=%s").split("\n")[-1] == "Start"
    assert "+changed" in git(where, "diff")
    assert git(where, "rev-parse", "HEAD") == place.base.commit
    assert git(where, "ls-files").split("\n")[0] == ".gitignore"


async def test_view_is_made_once(place: Place) -> None:
    view = await place.history.view(place.base.commit)
    stamp = (view / "HEAD").stat().st_mtime_ns
    assert await place.history.view(place.base.commit) == view
    assert (view / "HEAD").stat().st_mtime_ns == stamp


async def test_view_can_be_read_by_other_users(place: Place) -> None:
    view = await place.history.view(place.base.commit)
    for path in (view, *view.rglob("*")):
        is_open = path.is_dir() or path.parent.name == "hooks"
        assert path.stat().st_mode & 0o777 == (0o755 if is_open else 0o444), path


async def test_other_attempts_cannot_be_read_through_a_view(place: Place) -> None:
    write_files(place.where, {"rival.py": "the rival's work\n"})
    tree = (await place.history.snapshot(place.where, place.index)).tree
    rival = await place.history.commit(tree, [place.base.commit], "rival")
    blob = next(e.blob for e in await place.history.entries(tree) if e.path == "rival.py")
    where = bound(place, await place.history.view(place.base.commit))
    for id in (rival, tree, blob):
        with pytest.raises(AssertionError, match="git cat-file"):
            git(where, "cat-file", "-p", id)
    merged = bound(place, await place.history.view(rival))
    assert git(merged, "show", "HEAD:rival.py") == "the rival's work"


async def test_past_that_holds_plans_is_not_shown(
    tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"chains/plan.md": "reasoning"})
    git(tmp_project, "add", "--all")
    git(tmp_project, "commit", "--quiet", "--message", "Plan")
    history = await open_history(tmp_project)
    base = await history.base("r1", hidden=("chains",))
    child = await history.commit(base.tree, [base.commit], "child")
    view = await history.view(child)
    assert git(view, "log", "--format=%s").split("\n") == [
        "child",
        "The project as it was when the run started",
    ]
    with pytest.raises(AssertionError):
        git(view, "show", f"{base.head}:chains/plan.md")


async def test_long_past_is_cut(
    tmp_project: Path, open_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        git(tmp_project, "commit", "--quiet", "--allow-empty", "--message", f"Commit {number}")
    monkeypatch.setattr(view_module, "DEPTH", 3)
    history = await open_history(tmp_project)
    base = await history.base("r1")
    view = await history.view(base.commit)
    assert git(view, "log", "--format=%s").split("\n") == ["Commit 3", "Commit 2", "Commit 1"]


async def test_readonly_view_does_not_need_the_users_repository(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = make_project(tmp_path / "project")
    history = await open_history(project)
    base = await history.base("r1")
    view = await history.view(base.commit, tmp_path / "view")
    shutil.rmtree(project)
    assert git(view, "fsck") == ""
    assert git(view, "log", "--format=%s") == "Start"
