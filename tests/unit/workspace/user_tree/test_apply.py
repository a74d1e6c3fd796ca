"""A result is applied to the user's directory whole or not at all, and never over the user's own work."""

import asyncio
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from mimir.errors import Paused, WorkspaceError
from mimir.workspace import tree_removal
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.trees import TreeEntry, edit_tree
from mimir.workspace.user_tree import apply
from mimir.workspace.user_tree import user_file as person_tree
from mimir.workspace.user_tree.apply import ApplyPlan
from mimir.workspace.user_tree.user_file import FileChange
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory


class Result:
    """A project, and the result of a run in it."""

    def __init__(self, project: Path, history: GitHistory, base: BaseCommit, tree: str) -> None:
        self.project = project
        self.history = history
        self.base = base
        self.tree = tree
        self.journaled: list[Sequence[FileChange]] = []

    async def plan(self) -> ApplyPlan:
        return await apply.plan(
            await self.history.diff_trees(self.base.tree, self.tree), self.project
        )

    async def journal(self, steps: Sequence[FileChange]) -> None:
        self.journaled.append(steps)

    async def apply(self) -> list[tuple[str, str]]:
        planned = await self.plan()
        found = await apply.apply(self.history, planned, self.project, journal=self.journal)
        return [(one.path, one.why) for one in found]

    def state(self) -> dict[str, tuple[int, bytes]]:
        """Everything in the project, by path: mode and content."""
        found: dict[str, tuple[int, bytes]] = {}
        for path in self.project.rglob("*"):
            name = str(path.relative_to(self.project))
            if name.split("/")[0] in (".git", ".mimir") or (
                path.is_dir() and not path.is_symlink()
            ):
                continue
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[name] = (path.lstat().st_mode, content)
        return found


async def worked(project: Path, room: Path) -> Result:
    """Run through a project once: every kind of change, and one dirty file."""
    write_files(
        project,
        {"old": "old\n", "dir/a": "a\n", "dir/b": "b\n", "file": "f\n", "dirty": "d\n", "run.sh": "#!/bin/sh\n"},
    )  # fmt: skip
    (project / "link").symlink_to("file")
    (project / "calc.py").chmod(0o640)
    history = await GitHistory.open(project, project / ".mimir/work/history.git", home=room)
    base = await history.base("r1")
    where, index = room / "w", room / "w.index"
    await history.fill(base.commit, where, index)
    for name in ("old", "dir", "file", "link"):
        tree_removal.remove_tree(where / name)
    write_files(
        where,
        {"calc.py": "changed\n", "new/deep": "n\n", "dirty": "worked\n", "dir": "a file now\n", "file/inner": "i\n"},
    )  # fmt: skip
    (where / "run.sh").chmod(0o755)
    (where / "link").symlink_to("file/inner")
    return Result(project, history, base, (await history.snapshot(where, index)).tree)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A result whose project stays unchanged."""
    room = tmp_path_factory.mktemp("model")
    return asyncio.run(worked(make_project(room / "project"), room))


@pytest.fixture
def result(model: Result, tmp_path: Path) -> Result:
    """The model's result, for a copy of its project."""
    project = tmp_path / "project"
    shutil.copytree(
        model.project, project, symlinks=True, ignore=shutil.ignore_patterns(".git", ".mimir")
    )
    return Result(project, model.history, model.base, model.tree)


@pytest.fixture
async def repository(tmp_project: Path, tmp_path: Path) -> Result:
    """A result for a repository of its own."""
    return await worked(tmp_project, tmp_path)


async def is_applied(result: Result, room: Path) -> bool:
    """Say whether the project holds exactly the result."""
    await result.history.checkout(result.tree, room / "expected")
    expected = Result(room / "expected", result.history, result.base, result.tree)
    return [
        (name, mode & 0o100, text) for name, (mode, text) in sorted(result.state().items())
    ] == [(name, mode & 0o100, text) for name, (mode, text) in sorted(expected.state().items())]


async def test_result_is_applied_completely(result: Result, tmp_path: Path) -> None:
    assert await result.apply() == []
    project = result.project
    assert (project / "calc.py").read_text() == "changed\n"
    assert stat.S_IMODE((project / "calc.py").stat().st_mode) == 0o640
    assert (project / "new/deep").read_text() == "n\n"
    assert not (project / "old").exists()
    assert (project / "dir").read_text() == "a file now\n"
    assert (project / "file/inner").read_text() == "i\n"
    assert os.access(project / "run.sh", os.X_OK)
    assert (project / "link").readlink() == Path("file/inner")
    assert await is_applied(result, tmp_path)


async def test_journal_is_written_before_the_first_change(result: Result) -> None:
    before = result.state()

    async def journal(steps: Sequence[FileChange]) -> None:
        assert result.state() == before
        await result.journal(steps)

    planned = await result.plan()
    await apply.apply(result.history, planned, result.project, journal=journal)
    assert result.journaled == [planned.steps]
    steps = {step.path: step for step in planned.steps}
    assert steps["old"].new is None
    assert steps["new/deep"].old is None
    assert (steps["run.sh"].old or "").split(":")[0] == "100644"
    assert (steps["run.sh"].new or "").split(":")[0] == "100755"


async def test_untouched_file_may_change_and_keeps_the_change(result: Result) -> None:
    write_files(result.project, {"README.md": "mine\n", "own": "mine\n", "new/own": "mine\n"})
    assert await result.apply() == []
    assert (result.project / "README.md").read_text() == "mine\n"
    assert (result.project / "new/own").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("edit", "path", "why"),
    [
        (lambda p: write_files(p, {"calc.py": "mine\n"}), "calc.py", "was changed"),
        (lambda p: (p / "calc.py").unlink(), "calc.py", "was deleted"),
        (lambda p: (p / "calc.py").chmod(0o755), "calc.py", "was changed"),
        (lambda p: write_files(p, {"old": "mine\n"}), "old", "was changed"),
        (lambda p: write_files(p, {"new/deep": "mine\n"}), "new/deep", "was created"),
        (lambda p: write_files(p, {"new": "mine\n"}), "new/deep", "new is a file or a link now"),
        (lambda p: (p / "new").symlink_to("/tmp"), "new/deep", "new is a file or a link now"),
        (lambda p: write_files(p, {"dir/mine": "mine\n"}), "dir", "is a directory with other files"),
        (lambda p: (p / "old").replace(p / "link"), "link", "was changed"),
        (lambda p: ((p / "calc.py").unlink(), os.mkfifo(p / "calc.py")), "calc.py", "is no regular file"),
        (lambda p: ((p / "calc.py").unlink(), (p / "calc.py").symlink_to("x")), "calc.py", "was changed"),
    ],
)  # fmt: skip
async def test_apply_stops_at_a_file_that_the_user_changed(
    result: Result, edit: object, path: str, why: str
) -> None:
    edit(result.project)  # type: ignore[operator]
    special = result.project / "calc.py"
    if special.exists() and not special.is_file():
        found = await result.apply()
        tree_removal.remove_tree(special)
        before = after = result.state()
    else:
        before = result.state()
        found = await result.apply()
        after = result.state()
    assert any(one[0] == path and why in one[1] for one in found), found
    assert after == before
    assert result.journaled == []


async def test_file_that_has_the_result_already_is_no_conflict(result: Result) -> None:
    write_files(result.project, {"calc.py": "changed\n"})
    (result.project / "old").unlink()
    assert await result.apply() == []


class Killed(BaseException):
    """Stands for the end of the process."""


def dies_after(monkeypatch: pytest.MonkeyPatch, moves: int) -> None:
    """Let the process die when so many moves are made, in the middle of the next one."""
    made = person_tree.make_change
    count = 0

    def make(*args: object) -> object:
        nonlocal count
        count += 1
        if count > moves:
            monkeypatch.setattr(person_tree, "replace_file", half)
        return made(*args)  # type: ignore[arg-type]

    def half(parent: int, name: str, data: bytes, *, temporary: str, **more: object) -> None:
        file = os.open(temporary, os.O_CREAT | os.O_WRONLY, dir_fd=parent)
        os.write(file, data[:1])
        os.close(file)
        raise Killed

    monkeypatch.setattr(person_tree, "make_change", make)
    monkeypatch.setattr(apply, "undo", nothing)


async def nothing(*args: object) -> None:
    """A dead process undoes nothing."""


@pytest.mark.parametrize("moves", [0, 2, 5, 7])
@pytest.mark.parametrize("way", ["finish", "undo"])
async def test_next_command_repairs_an_interrupted_apply(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int, way: str
) -> None:
    before = result.state()
    with monkeypatch.context() as patch:
        dies_after(patch, moves)
        with pytest.raises(Killed):
            await result.apply()
    (steps,) = result.journaled
    for _ in range(2):
        act = apply.finish if way == "finish" else apply.undo
        assert await act(result.history, steps, result.project) == ()
    if way == "undo":
        assert result.state() == before
    else:
        assert await is_applied(result, tmp_path)
    assert not [name for name in result.state() if ".mimir" in name]


async def test_edit_of_the_user_after_a_crash_is_kept(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        dies_after(patch, 4)
        with pytest.raises(Killed):
            await result.apply()
    write_files(result.project, {"calc.py": "mine\n"})
    (steps,) = result.journaled
    before = result.state()
    found = await apply.finish(result.history, steps, result.project)
    assert [one.path for one in found] == ["calc.py"]
    assert result.state() == before
    found = await apply.undo(result.history, steps, result.project)
    assert [one.path for one in found] == ["calc.py"]
    assert (result.project / "calc.py").read_text() == "mine\n"
    assert (result.project / "old").read_text() == "old\n"
    assert (result.project / "dir/a").exists()


async def test_edit_between_plan_and_apply_is_seen(result: Result) -> None:
    planned = await result.plan()
    write_files(result.project, {"calc.py": "mine\n"})
    before = result.state()
    found = await apply.apply(result.history, planned, result.project, journal=result.journal)
    assert [one.path for one in found] == ["calc.py"]
    assert result.state() == before


async def test_edit_in_the_middle_takes_everything_back(result: Result) -> None:
    before = result.state()

    async def journal(steps: Sequence[FileChange]) -> None:
        write_files(result.project, {"run.sh": "mine\n"})

    found = await apply.apply(result.history, await result.plan(), result.project, journal=journal)
    assert [one.path for one in found] == ["run.sh"]
    after = result.state()
    assert after.pop("run.sh")[1] == b"mine\n"
    before.pop("run.sh")
    assert after == before


async def test_full_disk_takes_everything_back(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = result.state()
    real = person_tree.replace_file

    def full(parent: int, name: str, *args: object, **more: object) -> None:
        if name == "deep":
            raise OSError(28, "No space left on device")
        real(parent, name, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(person_tree, "replace_file", full)
    with pytest.raises(Paused):
        await result.apply()
    assert result.state() == before


async def test_outward_link_and_unusual_paths_are_refused(result: Result) -> None:
    old = FileChange(path="l", old=None, new=f"120000:{'0' * 40}")
    written = await result.history._hidden.git.run(
        "hash-object", "-w", "--stdin", stdin=b"../../etc"
    )
    entry = TreeEntry(mode="120000", blob=written.word, path="l")
    tree = await edit_tree(result.history._hidden, result.base.tree, {"l": entry})
    evil = Result(result.project, result.history, result.base, tree)
    assert await evil.apply() == [("l", "the link leads out of the project")]
    assert not (result.project / "l").is_symlink()
    for path in ("../x", "/x", ".git/config", "a/.GIT/x"):
        planned = ApplyPlan(steps=(FileChange(path=path, old=None, new=old.new),), conflicts=())
        found = await apply.apply(result.history, planned, result.project, journal=result.journal)
        assert [one.path for one in found] == [path]


async def test_new_files_belong_to_the_owner_of_the_project(result: Result) -> None:
    if os.geteuid() == 0:
        os.chown(result.project, 1234, 1234)
        os.chown(result.project / "calc.py", 4321, 4321)
    assert await result.apply() == []
    owner = result.project.stat().st_uid
    assert (result.project / "new/deep").stat().st_uid == owner
    assert (result.project / "link").lstat().st_uid == owner
    assert (result.project / "calc.py").stat().st_uid == (4321 if os.geteuid() == 0 else owner)


# The commit.


async def committed(result: Result) -> str:
    planned = await result.plan()
    assert await result.apply() == []
    return await apply.commit(result.history, planned.steps, "Apply run r1\n")


async def test_commit_holds_exactly_the_applied_files(repository: Result) -> None:
    write_files(repository.project, {"staged": "s\n", "README.md": "mine\n"})
    git(repository.project, "add", "staged")
    before = git(repository.project, "rev-parse", "HEAD")
    made = await committed(repository)
    project = repository.project
    assert git(project, "rev-parse", "HEAD") == made
    assert git(project, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(project, "rev-parse", "HEAD^") == before
    changed = git(project, "show", "--name-status", "--format=", "HEAD").split("\n")
    assert changed == [
        "M\tcalc.py",
        "A\tdir",
        "A\tdirty",
        "A\tfile/inner",
        "A\tlink",
        "A\tnew/deep",
        "A\trun.sh",
    ]
    assert git(project, "status", "--porcelain").split("\n") == [" M README.md", "A  staged"]
    assert "mimir" in git(project, "reflog", "-1")
    assert git(project, "fsck", "--strict") == ""
    again = await apply.commit(repository.history, repository.journaled[0], "Apply run r1\n")
    assert again == made


async def test_commit_runs_no_hook(repository: Result, tmp_path: Path) -> None:
    for name in (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
        "post-index-change",
    ):
        hook = repository.project / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        hook.chmod(0o755)
    await committed(repository)
    assert not (tmp_path / "ran").exists()


async def test_apply_commits_on_a_detached_head_after_new_commits(
    repository: Result,
) -> None:
    git(repository.project, "checkout", "--quiet", "--detach")
    git(repository.project, "commit", "--quiet", "--allow-empty", "--message", "Mine")
    mine = git(repository.project, "rev-parse", "HEAD")
    made = await committed(repository)
    assert git(repository.project, "rev-parse", "HEAD") == made
    assert git(repository.project, "rev-parse", "HEAD^") == mine


async def test_commit_waits_for_a_merge_to_end(repository: Result) -> None:
    planned = await repository.plan()
    write_files(
        repository.project, {".git/MERGE_HEAD": git(repository.project, "rev-parse", "HEAD") + "\n"}
    )
    with pytest.raises(WorkspaceError, match="MERGE_HEAD"):
        await apply.commit(repository.history, planned.steps, "x")


async def test_commit_into_a_locked_index_moves_nothing(repository: Result) -> None:
    planned = await repository.plan()
    before = git(repository.project, "rev-parse", "HEAD")
    (repository.project / ".git/index.lock").write_text("")
    with pytest.raises(WorkspaceError, match=r"index\.lock"):
        await apply.commit(repository.history, planned.steps, "x")
    assert git(repository.project, "rev-parse", "HEAD") == before


async def test_first_commit_of_a_repository(tmp_path: Path, open_history: OpenHistory) -> None:
    project = tmp_path / "fresh"
    write_files(project, {"a.py": "x", "b.py": "y"})
    git(project, "init", "--quiet", "--initial-branch=main")
    history = await open_history(project)
    base = await history.base("r1")
    entry = next(one for one in await history.entries(base.tree) if one.path == "a.py")
    made = await history.commit_for_person({"a.py": entry}, "First\n")
    assert git(project, "rev-parse", "main") == made
    assert git(project, "status", "--porcelain") == "?? .mimir/\n?? b.py"


async def test_commit_in_a_part_of_a_repository(tmp_path: Path, open_history: OpenHistory) -> None:
    top = make_project(tmp_path / "mono", {"pkg/a.py": "a\n", "other.py": "o\n"})
    history = await open_history(top / "pkg")
    base = await history.base("r1")
    entry = next(one for one in await history.entries(base.tree) if one.path == "a.py")
    await history.commit_for_person({"a.py": None, "b.py": entry}, "Move\n")
    changed = git(top, "show", "--name-status", "--no-renames", "--format=", "HEAD").split("\n")
    assert changed == ["D\tpkg/a.py", "A\tpkg/b.py"]


async def test_plain_directory_has_no_branch_to_commit_on(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    (tmp_path / "plain").mkdir()
    history = await open_history(tmp_path / "plain")
    with pytest.raises(WorkspaceError, match="not in a git repository"):
        await apply.commit(history, [], "x")
