"""Results of git for one base speed up the next one, and change nothing in it."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.git_command import GitCommand, GitResult
from mimir.workspace.git.history import GitHistory
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory

Change = Callable[[Path], object]


def _rewrite_unseen(project: Path) -> None:
    """Change a file without a change of its size or its modification time."""
    file = project / "calc.py"
    status = file.stat()
    file.write_text(file.read_text()[::-1])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _stage_and_change_back(project: Path) -> None:
    said = (project / "calc.py").read_bytes()
    write_files(project, {"calc.py": "staged\n"})
    git(project, "add", "calc.py")
    (project / "calc.py").write_bytes(said)


def _put_directory_in_place(project: Path) -> None:
    (project / "calc.py").unlink()
    write_files(project, {"calc.py/inner.py": "x"})


def _put_file_in_place(project: Path) -> None:
    shutil.rmtree(project / "tests")
    write_files(project, {"tests": "x"})


def _link(project: Path) -> None:
    (project / "calc.py").unlink()
    (project / "calc.py").symlink_to("README.md")


def _forget(project: Path) -> None:
    git(project, "rm", "--quiet", "--cached", "calc.py")
    write_files(project, {".gitignore": "calc.py\n.mimir/\n"})


def _ignore_new(project: Path) -> None:
    write_files(project, {".gitignore": "new.py\n.mimir/\n"})


def _conflict(project: Path) -> None:
    git(project, "checkout", "--quiet", "-b", "other")
    write_files(project, {"calc.py": "theirs\n"})
    git(project, "commit", "--quiet", "--all", "--message", "Theirs")
    git(project, "checkout", "--quiet", "main")
    write_files(project, {"calc.py": "ours\n"})
    git(project, "commit", "--quiet", "--all", "--message", "Ours")
    with pytest.raises(AssertionError):
        git(project, "merge", "--quiet", "other")


CHANGES: dict[str, Change] = {
    "nothing": lambda project: None,
    "other content": lambda project: write_files(project, {"calc.py": "other\n"}),
    "unseen content": _rewrite_unseen,
    "staged, then changed back": _stage_and_change_back,
    "removed": lambda project: (project / "calc.py").unlink(),
    "executable": lambda project: (project / "calc.py").chmod(0o755),
    "a directory instead": _put_directory_in_place,
    "a file instead of a directory": _put_file_in_place,
    "a link instead": _link,
    "no longer tracked, and ignored": _forget,
    "new before, ignored now": _ignore_new,
    "sparse": lambda project: git(
        project, "sparse-checkout", "set", "--no-cone", "/calc.py", "/.gitignore"
    ),
    "an unfinished merge": _conflict,
    "behind a filter": lambda project: write_files(
        project, {".gitattributes": "*.py filter=lfs\n", "calc.py": "whole\n"}
    ),
    "a repository inside": lambda project: make_project(project / "vendor/full"),
}


async def _fresh(project: Path) -> BaseCommit:
    """Return the base as a history finds it that has never seen the project."""
    place = project.parent / "fresh.git"
    history = await GitHistory.open(project, place, home=project.parent / "home")
    return await history.base("fresh")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_reused_base_equals_a_new_one(
    tmp_project: Path, open_history: OpenHistory, change: Change
) -> None:
    write_files(tmp_project, {"new.py": "x = 1\n"})
    history = await open_history(tmp_project)
    await history.base("r1")
    change(tmp_project)
    again, fresh = await history.base("r2"), await _fresh(tmp_project)
    assert (again.tree, again.commit, again.warnings) == (fresh.tree, fresh.commit, fresh.warnings)
    assert await history.verify_objects([again.commit]) == []


async def test_change_within_the_tick_of_the_index_is_seen(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(
        tmp_project, {"new.py": "x = 1\n"}
    )  # Untracked: the second base rewrites the index.
    os.utime(tmp_project / "calc.py", (1_700_000_000, 1_700_000_000))
    history = await open_history(tmp_project)
    git(tmp_project, "config", "--file", ".mimir/work/history.git/config", "core.trustCtime", "no")
    await history.base("r1")
    _rewrite_unseen(tmp_project)
    # As old as the file: git cannot decide by time whether the file changed after it was recorded.
    os.utime(_kept(tmp_project), (1_700_000_000, 1_700_000_000))
    again, fresh = await history.base("r2"), await _fresh(tmp_project)
    assert again.tree == fresh.tree


def _notify_before(
    monkeypatch: pytest.MonkeyPatch, listener: Callable[[Sequence[str]], None]
) -> None:
    """Call the listener with each command of git before it runs."""
    run = GitCommand.run

    async def run_and_notify(self: GitCommand, *arguments: str, **others: object) -> GitResult:
        listener(arguments)
        return await run(self, *arguments, **others)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(GitCommand, "run", run_and_notify)


async def test_unchanged_file_is_not_read_again(
    tmp_project: Path, open_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = await open_history(tmp_project)
    await history.base("r1")
    asked: list[Sequence[str]] = []
    _notify_before(monkeypatch, asked.append)
    await history.base("r2")
    assert not [words for words in asked if "update-index" in words]
    monkeypatch.setenv("GIT_INDEX_FILE", str(_kept(tmp_project)))
    known = git(tmp_project, "ls-files", "--debug", "calc.py")
    assert f"size: {(tmp_project / 'calc.py').stat().st_size}" in known


def _kept(project: Path) -> Path:
    return project / ".mimir/work/history.git/mimir/base.index"


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"x" * 1000])
async def test_damaged_index_is_made_anew(
    tmp_project: Path, open_history: OpenHistory, damage: bytes
) -> None:
    history = await open_history(tmp_project)
    before = await history.base("r1")
    _kept(tmp_project).write_bytes(damage)
    assert (await history.base("r2")).tree == before.tree
    assert _kept(tmp_project).read_bytes()[:4] == b"DIRC"


async def test_file_reset_by_the_user_is_written_again(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"calc.py": "committed\n"})
    git(tmp_project, "commit", "--quiet", "--all", "--message", "Later")
    history = await open_history(tmp_project)
    await history.base("r1")
    git(tmp_project, "update-ref", "-d", "refs/mimir/base/r1")
    git(tmp_project, "reset", "--quiet", "HEAD~")
    git(tmp_project, "reflog", "expire", "--expire=now", "--all")
    git(tmp_project, "gc", "--quiet", "--prune=now")
    base = await history.base("r2")
    assert await history.file(base.tree, "calc.py") == b"committed\n"
    assert await history.verify_objects([base.commit]) == []


async def test_failed_base_keeps_the_saved_index(
    tmp_project: Path, open_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = await open_history(tmp_project)
    await history.base("r1")
    before = _kept(tmp_project).read_bytes()

    def refuse(arguments: Sequence[str]) -> None:
        if "write-tree" in arguments:
            raise WorkspaceError("No.")

    _notify_before(monkeypatch, refuse)
    write_files(tmp_project, {"calc.py": "other\n"})
    with pytest.raises(WorkspaceError):
        await history.base("r2")
    assert _kept(tmp_project).read_bytes() == before
