"""A snapshot is the worker's tree, and no planted file steers it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from mimir.workspace import tree_removal
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.snapshot import WorkspaceSnapshot
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory, Place


async def taken(place: Place, files: Sequence[str] = ()) -> WorkspaceSnapshot:
    return await place.history.snapshot(place.where, place.index, files=files)


async def changes(place: Place, files: Sequence[str] = ()) -> dict[str, str]:
    tree = (await taken(place, files)).tree
    return {one.path: one.status for one in await place.history.diff_trees(place.base.tree, tree)}


async def test_unchanged_workspace_is_the_base_tree(place: Place) -> None:
    assert await taken(place) == WorkspaceSnapshot(tree=place.base.tree)


async def test_additions_changes_and_deletions_are_seen(place: Place) -> None:
    write_files(place.where, {"calc.py": "changed", "new/deep.py": "x", "new.o": "x"})
    (place.where / "old").unlink()
    assert await changes(place) == {"calc.py": "modified", "new/deep.py": "added", "old": "deleted"}


async def test_change_back_gives_the_base_tree_again(place: Place) -> None:
    write_files(place.where, {"calc.py": "changed"})
    assert (await taken(place)).tree != place.base.tree
    (place.where / "calc.py").write_bytes(
        await place.history.file(place.base.tree, "calc.py") or b""
    )
    assert (await taken(place)).tree == place.base.tree


async def test_mode_alone_is_a_change(place: Place) -> None:
    (place.where / "calc.py").chmod(0o755)
    tree = (await taken(place)).tree
    (change,) = await place.history.diff_trees(place.base.tree, tree)
    assert (change.old_mode, change.mode) == ("100644", "100755")
    assert change.old_blob == change.new_blob


async def test_file_and_directory_change_places(place: Place) -> None:
    (place.where / "old").unlink()
    write_files(place.where, {"old/inner": "x"})
    tree_removal.remove_tree(place.where / "sub")
    write_files(place.where, {"sub": "x"})
    assert await changes(place) == {
        "old": "deleted",
        "old/inner": "added",
        "sub/deep/file": "deleted",
        "sub/file": "deleted",
        "sub": "added",
    }


async def test_file_replaced_by_an_empty_directory_is_deleted(place: Place) -> None:
    (place.where / "old").unlink()
    (place.where / "old").mkdir()
    assert await changes(place) == {"old": "deleted"}


async def test_ignored_file_is_recorded_if_the_task_names_it(place: Place) -> None:
    write_files(
        place.where,
        {
            "dist/app.js": "x",
            "dist/__pycache__/x.pyc": "x",
            "a.o": "x",
            "sub/b.o": "x",
            ".env": "x",
        },
    )
    assert await changes(place) == {}
    assert await changes(place, ["dist/**"]) == {"dist/app.js": "added"}
    assert await changes(place, ["dist/**", "*.o", ".env"]) == {
        "dist/app.js": "added",
        "a.o": "added",
        ".env": "added",
    }


async def test_unusual_globs_match_literal_names_without_an_error(place: Place) -> None:
    write_files(place.where, {"pages/[id].o": "x"})
    files = ["pages/[id].o", "/abs", "../up", "", ":(bad)magic", "[", "**"]
    assert "pages/[id].o" in await changes(place, files)


async def test_ignore_rules_that_a_worker_writes_hide_nothing(place: Place) -> None:
    write_files(
        place.where,
        {".gitignore": "*\n", "sub/.gitignore": "*\n", "sub/new.py": "x", "new.py": "x"},
    )
    assert set(await changes(place)) == {".gitignore", "sub/.gitignore", "sub/new.py", "new.py"}


async def test_attributes_that_a_worker_writes_change_no_byte(place: Place) -> None:
    write_files(
        place.where,
        {
            ".gitattributes": "* text eol=crlf ident working-tree-encoding=UTF-16\n",
            "a.txt": "a\r\n$Id$\r\n",
        },
    )
    tree = (await taken(place)).tree
    assert await place.history.file(tree, "a.txt") == b"a\r\n$Id$\r\n"


async def test_nested_repository_is_opened_up_and_reported(place: Place) -> None:
    make_project(place.where / "full")
    make_project(place.where / "full/inner")
    (place.where / "empty").mkdir()
    git(place.where / "empty", "init", "--quiet")
    write_files(place.where, {"empty/kept": "x"})
    git(place.where / "sub", "init", "--quiet")
    write_files(place.where, {"sub/new": "x", "gitfile/.git": "gitdir: /etc\n", "gitfile/x": "x"})
    snapshot = await taken(place)
    assert set(snapshot.nested) == {"full", "empty", "sub", "gitfile"}
    found = set(await place.history.paths(snapshot.tree))
    assert {"full/calc.py", "full/inner/calc.py", "empty/kept", "sub/new", "gitfile/x"} <= found
    assert all(entry.mode != "160000" for entry in await place.history.entries(snapshot.tree))
    assert (await taken(place)).nested == ()


async def test_many_nested_repositories_are_opened_up_in_one_snapshot(place: Place) -> None:
    inner = place.where
    for _ in range(25):
        inner /= "r"
        inner.mkdir()
        git(inner, "init", "--quiet")
        write_files(inner, {"f": "x"})
    snapshot = await taken(place)
    assert snapshot.nested == ("r",)
    assert f"{'r/' * 25}f" in await place.history.paths(snapshot.tree)


async def test_nested_repository_in_an_ignored_directory_that_the_task_names(place: Place) -> None:
    make_project(place.where / "dist/app")
    assert (await taken(place)).nested == ()
    snapshot = await taken(place, ["dist/**"])
    assert snapshot.nested == ("dist/app",)
    assert "dist/app/calc.py" in await place.history.paths(snapshot.tree)


async def test_empty_git_file_to_mount_on_is_not_reported(place: Place) -> None:
    (place.where / ".git").touch()
    assert await taken(place) == WorkspaceSnapshot(tree=place.base.tree)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "/etc/passwd"),
        ("l", "/workspace/calc.py"),
        ("l", ".."),
        ("l", "../x"),
        ("l", "sub/../../x"),
        ("l", "sub/.."),
        ("sub/l", "../../x"),
        ("sub/l", "./../../x"),
        ("l", ".git/config"),
    ],
)
async def test_link_that_leaves_the_workspace_is_named(
    place: Place, path: str, target: str
) -> None:
    (place.where / path).symlink_to(target)
    snapshot = await taken(place)
    assert snapshot.refused == (path,)
    assert await place.history.links_out(snapshot.tree, [path]) == (path,)
    assert await place.history.links_out(snapshot.tree) == (path,)
    assert await place.history.links_out(snapshot.tree, ["calc.py"]) == ()


@pytest.mark.parametrize(
    ("path", "target"), [("l", "calc.py"), ("l", "sub/file"), ("sub/l", "../calc.py"), ("l", "nowhere"), ("l", "./sub")]
)  # fmt: skip
async def test_link_that_stays_inside_is_recorded(place: Place, path: str, target: str) -> None:
    (place.where / path).symlink_to(target)
    snapshot = await taken(place)
    assert snapshot.refused == ()
    assert await place.history.file(snapshot.tree, path) == target.encode()


async def test_directory_swapped_for_a_link_brings_nothing_in(place: Place, tmp_path: Path) -> None:
    write_files(tmp_path / "outside", {"file": "secret"})
    tree_removal.remove_tree(place.where / "sub")
    (place.where / "sub").symlink_to(tmp_path / "outside")
    snapshot = await taken(place)
    assert snapshot.refused == ("sub",)
    assert "sub/file" not in await place.history.paths(snapshot.tree)


async def test_pipes_and_sockets_are_skipped_and_named(place: Place) -> None:
    os.mkfifo(place.where / "pipe")
    (place.where / "calc.py").unlink()
    os.mkfifo(place.where / "calc.py")
    os.mknod(place.where / "socket", stat.S_IFSOCK | 0o600)
    snapshot = await taken(place)
    assert snapshot.special == ("calc.py", "pipe", "socket")
    changed = await place.history.diff_trees(place.base.tree, snapshot.tree)
    assert [(one.path, one.status) for one in changed] == [("calc.py", "deleted")]


async def test_link_named_gitmodules_stops_no_snapshot(place: Place) -> None:
    (place.where / ".gitmodules").symlink_to("calc.py")
    snapshot = await taken(place)
    assert snapshot.special == (".gitmodules",)
    assert snapshot.tree == place.base.tree


async def test_file_closed_to_its_owner_is_recorded(place: Place) -> None:
    write_files(place.where, {"closed": "x"})
    (place.where / "closed").chmod(0)
    assert await changes(place) == {"closed": "added"}


async def test_unusual_file_names_are_recorded(place: Place) -> None:
    odd = ["line\nbreak", "tab\t", " ", "back\\slash", "-n", ":(top)x", os.fsdecode(b"\xff"), "a."]
    refused = ["git~1", ".GIT", ".git .", ".git:x"]
    for name in (*odd, *refused):
        (place.where / name).write_text("x")
    assert set(await changes(place)) == set(odd)
    assert set((await taken(place)).special) == set(refused)


async def test_paths_that_are_too_deep_are_left_out_and_named(place: Place) -> None:
    names = ("d" * 200,) * 25
    top = os.open(place.where, os.O_RDONLY)
    for number, name in enumerate(names):
        os.mkdir(name, dir_fd=top)
        below = os.open(name, os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
        if number in (3, 7):
            os.close(os.open("f", os.O_CREAT, dir_fd=top))
    os.close(top)
    assert set(await changes(place)) == {"/".join((*names[:4], "f"))}
    special = (await taken(place)).special
    assert "/".join((*names[:8], "f")) in special
    assert any(one.startswith(names[0]) and len(one) == 200 for one in special), special


async def test_stale_lock_does_not_stop_a_snapshot(place: Place) -> None:
    place.index.with_name(f"{place.index.name}.lock").write_text("")
    write_files(place.where, {"new": "x"})
    assert await changes(place) == {"new": "added"}


async def test_snapshot_survives_garbage_collection_of_the_user(
    tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    place = Place(history, await history.base("r1"), tmp_path / "work/1.1")
    await place.fill()
    # Given an object in the user's repository without a reference
    write_files(tmp_project, {"dangling": "the same content\n"})
    git(tmp_project, "hash-object", "-w", "dangling")
    # When a worker makes the same content, and the user collects garbage
    write_files(place.where, {"new": "the same content\n"})
    snapshot = await taken(place)
    commit = await place.history.commit(snapshot.tree, [place.base.commit], "work")
    git(tmp_project, "gc", "--quiet", "--prune=now")
    # Then the snapshot still has it
    assert await place.history.file(commit, "new") == b"the same content\n"
    assert await place.history.verify_objects([commit]) == []


async def test_changes_outside_the_tasks_files_are_left_out_and_named(place: Place) -> None:
    write_files(place.where, {"calc.py": "changed", "sub/new.py": "x", "stray.txt": "x"})
    (place.where / "old").unlink()
    tree = (await taken(place)).tree
    history: GitHistory = place.history
    kept, left_out = await history.restrict(
        tree, place.base.tree, files=["calc.py"], touched=["sub/new.py"]
    )
    assert left_out == ("old", "stray.txt")
    changed = {one.path for one in await history.diff_trees(place.base.tree, kept)}
    assert changed == {"calc.py", "sub/new.py"}
    assert await history.restrict(tree, place.base.tree, files=[]) == (tree, ())
