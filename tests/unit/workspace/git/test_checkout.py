"""A workspace holds exactly a tree, without the files of earlier attempts."""

import os
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace.git import trees
from mimir.workspace.git.history import GitHistory
from tests.support.projects import make_project, write_files
from tests.unit.workspace.conftest import OpenHistory, Place

EXPECTED = {
    ".gitignore", "README.md", "calc.py", "link", "old", "pyproject.toml", "run.sh", "sub/deep/file",
    "sub/file", "tests/test_calc.py"
}  # fmt: skip


async def test_new_workspace_holds_the_tree(place: Place) -> None:
    assert place.files() == EXPECTED
    assert os.access(place.where / "run.sh", os.X_OK)
    assert str((place.where / "link").readlink()) == "sub/deep/file"
    assert place.where.stat().st_mode & 0o077 == 0


async def test_restore_undoes_all_changes_but_ignored_files(place: Place) -> None:
    write_files(
        place.where,
        {
            "calc.py": "changed",
            "junk/deep/x": "x",
            "build/kept.o": "product",
            "planted/.gitignore": "*\n",
            "planted/x": "x",
        },
    )
    make_project(place.where / "nested")
    (place.where / "README.md").unlink()
    (place.where / "sub/deep/file").unlink()
    (place.where / "sub/deep/file").mkdir()
    (place.where / "empty/dirs").mkdir(parents=True)
    os.mkfifo(place.where / "pipe")
    await place.fill()
    assert place.files() - {"pipe"} == EXPECTED | {"build/kept.o"}
    assert not (place.where / "empty").exists()
    assert (place.where / "calc.py").read_text() != "changed"


async def test_directory_swapped_for_a_link_is_not_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write_files(outside, {"deep/file": "theirs"})
    await place.fill()
    (place.where / "sub").rename(place.where / "moved")
    (place.where / "sub").symlink_to(outside)
    await place.fill()
    assert (outside / "deep/file").read_text() == "theirs"
    assert not (place.where / "sub").is_symlink()
    assert place.files() == EXPECTED


async def test_remains_of_a_killed_git_are_repaired(place: Place) -> None:
    place.index.with_name(f"{place.index.name}.lock").write_text("")
    place.index.write_bytes(b"half an ind")
    (place.where / "calc.py").unlink()
    await place.fill()
    assert place.files() == EXPECTED
    assert (await place.history.snapshot(place.where, place.index)).tree == place.base.tree


async def test_removed_workspace_is_made_again(place: Place) -> None:
    place.where.rename(place.where.with_name("gone"))
    with pytest.raises(WorkspaceError, match="is missing"):
        await place.history.snapshot(place.where, place.index)
    await place.fill()
    assert place.files() == EXPECTED


async def test_snapshot_before_any_fill_is_refused(empty_place: Place) -> None:
    place = empty_place
    place.where.mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="is missing"):
        await place.history.snapshot(place.where, place.index)


async def test_planted_repository_at_the_top_configures_nothing(
    place: Place, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    write_files(
        place.where,
        {
            ".git/config": f"[core]\n\tfsmonitor = touch {ran}\n[filter \"x\"]\n\tclean = touch {ran}\n\tsmudge = touch {ran}\n",
            ".git/HEAD": "ref: refs/heads/main\n",
            ".gitattributes": "* filter=x\n",
        },
    )  # fmt: skip
    taken = await place.history.snapshot(place.where, place.index)
    await place.fill(taken.tree)
    assert taken.nested == (".",)
    assert not ran.exists()
    assert not (place.where / ".git").exists()


async def test_recorded_tree_is_restored_and_ignore_rules_stay_those_of_the_base(
    place: Place,
) -> None:
    write_files(place.where, {".gitignore": "*\n!.gitignore\n", "new.py": "x", "a.o": "x"})
    taken = await place.history.snapshot(place.where, place.index)
    again = Place(place.history, place.base, place.where.with_name("1.2"))
    await again.history.fill(taken.tree, again.where, again.index, base=place.base.commit)
    write_files(again.where, {"newer.py": "x", "b.o": "x"})
    after = await again.history.snapshot(again.where, again.index)
    added = {change.path for change in await again.history.diff_trees(place.base.tree, after.tree)}
    assert added == {".gitignore", "new.py", "newer.py"}


async def test_checkout_holds_nothing_else(place: Place, tmp_path: Path) -> None:
    where = tmp_path / "check"
    write_files(where, {"old": "x"})
    await place.history.checkout(place.base.tree, where)
    assert {path.name for path in where.iterdir()} == {
        ".gitignore", "README.md", "calc.py", "link", "old", "pyproject.toml", "run.sh", "sub", "tests"
    }  # fmt: skip


async def test_tree_of_hundreds_of_files_is_laid_out_exactly(
    open_history: OpenHistory, tmp_path: Path
) -> None:
    """From a hundred files on git writes with several processes."""
    project = make_project(tmp_path / "project")
    write_files(project, {f"pkg{n % 7}/part/m{n:03}.py": f"x = {n}\n" for n in range(300)})
    for n in range(0, 300, 10):
        (project / f"pkg{n % 7}/part/m{n:03}.py").chmod(0o755)
        (project / f"pkg{n % 7}/link{n}").symlink_to(f"part/m{n:03}.py")
    history = await open_history(project)
    place = Place(history, await history.base("r1"), tmp_path / "work")
    await place.fill()
    clean = tmp_path / "clean"
    await history.checkout(place.base.tree, clean)
    expected = _contents(project)
    assert len(expected) > 330
    assert _contents(place.where) == _contents(clean) == expected


def _contents(where: Path) -> dict[str, tuple[object, bool]]:
    """Return the files: path → (bytes, or the target of a link; whether it can be run)."""
    found = [path for path in where.rglob("*") if path.is_symlink() or path.is_file()]
    return {
        str(path.relative_to(where)): (
            path.readlink() if path.is_symlink() else path.read_bytes(),
            os.access(path, os.X_OK),
        )
        for path in found
        if not {".git", ".mimir"} & set(path.relative_to(where).parts)
    }


async def test_submodule_is_an_empty_directory_and_stays_as_it_is(
    empty_place: Place,
) -> None:
    place = empty_place
    history = place.history
    entries = [*await history.entries(place.base.tree)]
    gitlink = trees.TreeEntry(mode=trees.SUBMODULE, blob=place.base.commit, path="lib/inner")
    tree = await trees.write_tree(history._hidden, [*entries, gitlink])
    await history.fill(tree, place.where, place.index)
    assert (place.where / "lib/inner").is_dir()
    write_files(place.where, {"lib/inner/x": "x", "lib/own": "x"})
    taken = await history.snapshot(place.where, place.index)
    assert [change.path for change in await history.diff_trees(tree, taken.tree)] == ["lib/own"]
    (place.where / "lib/inner/x").unlink()
    (place.where / "lib/inner").rmdir()
    (place.where / "lib/own").unlink()
    assert (await history.snapshot(place.where, place.index)).tree == tree
    await history.fill(tree, place.where, place.index)
    assert list((place.where / "lib/inner").iterdir()) == []


async def test_files_belong_to_the_user_of_the_sandbox(tmp_project: Path, tmp_path: Path) -> None:
    # Only root can give files away; anybody else has no need to.
    owner = (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    history = await GitHistory.open(tmp_project, tmp_path / "h.git", owner=owner, home=tmp_path)
    base = await history.base("r1")
    place = Place(history, base, tmp_path / "work/1.1")
    await place.fill()
    assert {path.lstat().st_uid for path in (place.where, *place.where.rglob("*"))} == {owner[0]}
    await history.checkout(base.tree, tmp_path / "check")
    assert (tmp_path / "check/calc.py").stat().st_uid == owner[0]
    assert (await history.snapshot(place.where, place.index)).tree == base.tree
