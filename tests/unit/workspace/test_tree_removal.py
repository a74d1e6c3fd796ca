"""Any files of a worker can be removed, and no other file is."""

import os
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace import tree_removal


def test_links_are_removed_and_their_targets_stay(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    (tmp_path / "gone/sub").mkdir(parents=True)
    (tmp_path / "gone/sub/link").symlink_to(tmp_path / "kept")
    (tmp_path / "gone/link").symlink_to(tmp_path / "kept/file")
    os.mkfifo(tmp_path / "gone/pipe")
    tree_removal.remove_tree(tmp_path / "gone")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (tmp_path / "kept/file").read_text() == "x"


def test_link_to_a_directory_is_removed_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    tree_removal.remove_tree(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]


def test_forbidden_directories_are_removed(tmp_path: Path) -> None:
    (tmp_path / "gone/a/b").mkdir(parents=True)
    (tmp_path / "gone/a/b/file").write_text("x")
    (tmp_path / "gone/a/b").chmod(0)
    (tmp_path / "gone/a").chmod(0o500)
    (tmp_path / "gone").chmod(0)
    tree_removal.remove_tree(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


def test_nesting_deeper_than_paths_and_recursion_is_removed(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("dir", dir_fd=here)
        below = os.open("dir", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    tree_removal.remove_tree(tmp_path / "dir")
    assert list(tmp_path.iterdir()) == []


def test_removal_of_a_missing_tree_is_no_error(tmp_path: Path) -> None:
    tree_removal.remove_tree(tmp_path / "no")
    tree_removal.remove_tree(tmp_path / "no/such")


def test_directory_that_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: object, **kwargs: object) -> None:
        raise OSError(16, "Device or resource busy")

    (tmp_path / "mounted").mkdir()
    monkeypatch.setattr(tree_removal.os, "rmdir", busy)
    with pytest.raises(WorkspaceError, match=r"mounted cannot be removed.*busy"):
        tree_removal.remove_tree(tmp_path / "mounted")


def test_empty_directories_are_removed(tmp_path: Path) -> None:
    for name in ("empty/deep", "full"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "full/file").write_text("x")
    tree_removal.remove_empty_directories(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]
