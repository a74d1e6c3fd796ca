"""Refs of a run in the user's repository: branches to merge, refs of its own, nothing else."""

from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.history import GitHistory
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory

HIDDEN = ("chains",)


async def worked(
    history: GitHistory,
    base: BaseCommit,
    room: Path,
    files: dict[str, str],
    gone: tuple[str, ...] = (),
) -> str:
    """Return a commit on the base with these files changed."""
    where, index = room / "w", room / "w.index"
    await history.fill(base.commit, where, index)
    write_files(where, files)
    for name in gone:
        (where / name).unlink()
    tree = (await history.snapshot(where, index)).tree
    return await history.commit(tree, [base.commit], "Work\n\nMimir-Seal: abc\n")


async def test_branch_has_the_result_in_the_users_repository(
    tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    base = await history.base("r1")
    commit = await worked(history, base, tmp_path, {"new.py": "x\n"})
    before = git(tmp_project, "status", "--porcelain")
    assert await history.branch("r1", commit) == "mimir/r1"
    assert git(tmp_project, "rev-parse", "mimir/r1") == commit
    assert git(tmp_project, "show", "mimir/r1:new.py") == "x"
    assert git(tmp_project, "status", "--porcelain") == before
    assert git(tmp_project, "fsck", "--strict") == ""
    again = await worked(history, base, tmp_path, {"new.py": "y\n"})
    await history.branch("r1", again)
    assert git(tmp_project, "rev-parse", "mimir/r1") == again


async def test_dirty_base_is_between_the_users_commit_and_the_result(
    tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"dirty.py": "d\n"})
    history = await open_history(tmp_project)
    base = await history.base("r1")
    await history.branch("r1", await worked(history, base, tmp_path, {"new.py": "x\n"}))
    assert git(tmp_project, "diff", "--name-only", "main", "mimir/r1").split() == [
        "dirty.py",
        "new.py",
    ]
    git(tmp_project, "gc", "--quiet", "--prune=now")
    assert git(tmp_project, "show", "mimir/r1:dirty.py") == "d"


async def test_branch_keeps_files_that_the_base_left_out(
    tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"chains/plan.md": "p\n"})
    git(tmp_project, "add", "--all")
    git(tmp_project, "commit", "--quiet", "--message", "Plan")
    history = await open_history(tmp_project)
    base = await history.base("r1", hidden=HIDDEN)
    commit = await worked(
        history, base, tmp_path, {"new.py": "x\n", "chains/evil": "x\n"}, ("README.md",)
    )
    await history.branch("r1", commit)
    changed = git(tmp_project, "diff", "--name-status", "main", "mimir/r1").split("\n")
    assert changed == ["D\tREADME.md", "A\tnew.py"]
    assert git(tmp_project, "rev-parse", "mimir/r1^") == git(tmp_project, "rev-parse", "main")
    assert "Mimir-Seal: abc" in git(tmp_project, "show", "-s", "--format=%B", "mimir/r1")
    assert git(tmp_project, "rev-parse", "refs/mimir/result/r1") == commit


async def test_result_of_a_part_of_a_repository_is_put_in_its_place(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    top = make_project(tmp_path / "mono", {"pkg/a.py": "a\n", "pkg/b.py": "b\n", "other.py": "o\n"})
    history = await open_history(top / "pkg")
    base = await history.base("r1")
    commit = await worked(history, base, tmp_path, {"new/c.py": "c\n"}, ("b.py",))
    await history.branch("r1", commit)
    changed = git(top, "diff", "--name-status", "main", "mimir/r1").split("\n")
    assert changed == ["D\tpkg/b.py", "A\tpkg/new/c.py"]


async def test_branch_of_a_repository_without_commits(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = tmp_path / "fresh"
    write_files(project, {"a.py": "x"})
    git(project, "init", "--quiet")
    history = await open_history(project)
    base = await history.base("r1")
    await history.branch("r1", await worked(history, base, tmp_path, {"new.py": "x\n"}))
    assert git(project, "ls-tree", "-r", "--name-only", "mimir/r1").split() == ["a.py", "new.py"]


async def test_plain_directory_keeps_its_branch_hidden(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = tmp_path / "plain"
    write_files(project, {"a.py": "x"})
    history = await open_history(project)
    base = await history.base("r1")
    assert await history.branch("r1", base.commit) == "mimir/r1"
    assert git(project / ".mimir/work/history.git", "rev-parse", "mimir/r1") == base.commit
    assert {path.name for path in project.iterdir()} == {"a.py", ".mimir"}


async def test_checked_out_branch_of_the_user_is_not_moved(
    tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    base = await history.base("r1")
    await history.branch("r1", base.commit)
    git(tmp_project, "checkout", "--quiet", "mimir/r1")
    commit = await worked(history, base, tmp_path, {"new.py": "x\n"})
    with pytest.raises(WorkspaceError, match="checked out") as refusal:
        await history.branch("r1", commit)
    assert refusal.value.next_step is not None
    assert git(tmp_project, "status", "--porcelain") == ""
    assert git(tmp_project, "rev-parse", "refs/mimir/result/r1") == commit


@pytest.mark.parametrize(
    ("branches", "folder"),
    [
        (["mimir"], "mimir-runs"),
        (["mimir", "mimir-runs"], "mimir-runs-2"),
        (["mimir-runs"], "mimir"),
    ],
)
async def test_existing_branch_of_the_user_blocks_no_result(
    branches: list[str], folder: str, tmp_project: Path, open_history: OpenHistory
) -> None:
    for branch in branches:
        git(tmp_project, "branch", branch)
    history = await open_history(tmp_project)
    base = await history.base("r1")
    assert await history.branch("r1", base.commit) == f"{folder}/r1"
    assert git(tmp_project, "rev-parse", f"{folder}/r1") == base.commit


async def test_branch_without_commits_may_be_called_mimir(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = tmp_path / "new"
    project.mkdir()
    git(project, "init", "-q", "-b", "mimir")
    write_files(project, {"a": "a\n"})
    history = await open_history(project)
    assert await history.branch("r1", (await history.base("r1")).commit) == "mimir-runs/r1"
    git(project, "add", "a")
    git(project, "commit", "-qm", "First")


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        ("r1-task-1.1-2", "mimir/r1-task-1.1-2"),
        ("a b/../c~^:?*[\\", "mimir/a-b-c"),
        ("x.lock", "mimir/x"),
        ("-", "mimir/unnamed"),
        ("ünï", "mimir/n"),
    ],
)
async def test_any_name_makes_a_valid_branch(
    tmp_path: Path, open_history: OpenHistory, name: str, branch: str
) -> None:
    (tmp_path / "plain").mkdir()
    history = await open_history(tmp_path / "plain")
    assert await history.branch(name, (await history.base("r1")).commit) == branch
