"""No path leads out of a tree, and every refusal has a next step."""

import os
import socket
import stat
from pathlib import Path

import pytest

from mimir.errors import Paused, ToolError, WorkspaceError
from mimir.workspace import paths, safe_walk
from mimir.workspace.paths import DirectoryTree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src/app.py").write_text("print(1)\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return root


def test_file_is_written_and_read_back(root: Path) -> None:
    tree = DirectoryTree(root)
    tree.write("new/deep/file.txt", b"hello")
    assert tree.read("new/deep/file.txt") == b"hello"
    assert tree.size("new/deep/file.txt") == 5


def test_part_of_a_file_is_read(root: Path) -> None:
    tree = DirectoryTree(root)
    tree.write("f", b"0123456789")
    assert tree.read("f", offset=2, max_bytes=3) == b"234"
    assert tree.read("f", offset=100) == b""


def test_large_file_is_refused_but_readable_in_parts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MAX_READ_BYTES", 4)
    tree = DirectoryTree(root)
    tree.write("f", b"012345")
    with pytest.raises(ToolError, match="'f' has 6 bytes; files over 4 are not read"):
        tree.read("f")
    assert tree.read("f", max_bytes=4) == b"0123"


def test_too_long_text_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_WRITE_BYTES", 4)
    with pytest.raises(ToolError, match="Split it"):
        DirectoryTree(root).write("f", b"012345")


def test_many_files_of_a_directory_are_each_written_as_one_is(root: Path) -> None:
    tree = DirectoryTree(root)
    (root / "src/run.sh").write_text("old")
    (root / "src/run.sh").chmod(0o755)
    tree.write_many("src", [("run.sh", b"new"), ("other", b"more")])
    assert tree.read("src/run.sh") == b"new"
    assert (root / "src/run.sh").stat().st_mode & 0o777 == 0o755
    tree.write_many("a/new/one", [("f", b"1")])
    assert tree.walk() == ("a/new/one/f", "src/app.py", "src/other", "src/run.sh")


@pytest.mark.parametrize("name", ["../f", "below/f", "/etc/f", "", "..", ".git", "link", "hard"])
def test_of_many_files_each_is_refused_that_would_be_refused_alone(root: Path, name: str) -> None:
    (root / "src/link").symlink_to("../../outside/secret")
    (root / "src/hard").hardlink_to(root.parent / "outside/secret")
    with pytest.raises(ToolError):
        DirectoryTree(root).write_many("src", [("first", b"1"), (name, b"2"), ("last", b"3")])
    assert (root / "src/first").read_bytes() == b"1"
    assert not (root / "src/last").exists()
    assert (root.parent / "outside/secret").read_text() == "secret"


def test_many_files_are_written_through_no_linked_directory(root: Path) -> None:
    (root / "link").symlink_to("../outside")
    for directory in ("link", "link/below", "../outside", "", ".git"):
        with pytest.raises(ToolError):
            DirectoryTree(root).write_many(directory, [("secret", b"x")])
    with pytest.raises(ToolError, match="not part"):
        DirectoryTree(root, hidden=["src"]).write_many("src", [("f", b"x")])
    assert (root.parent / "outside/secret").read_text() == "secret"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "empty"),
        (".", "the workspace itself"),
        ("/etc/passwd", "absolute"),
        ("../outside/secret", "'..'"),
        ("src/../../outside/secret", "'..'"),
        ("a\0b", "NUL"),
        (".git/config", "belongs to the engine"),
        ("src/.GIT/hooks/x", "belongs to the engine"),
        ("\ud800", "no file name can hold"),
        ("x" * 300, "too long"),
        ("nothing/here.py", "There is no 'nothing"),
        ("src", "is a directory"),
        ("src/app.py/x", "not a directory"),
    ],
)
def test_bad_path_is_refused_with_a_next_step(root: Path, path: str, said: str) -> None:
    with pytest.raises(ToolError) as refusal:
        DirectoryTree(root).read(path)
    assert said in str(refusal.value)
    assert str(root) not in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_control_characters_of_a_path_are_escaped_in_messages(root: Path) -> None:
    with pytest.raises(ToolError) as refusal:
        DirectoryTree(root).read("a\x1b[31m\n")
    assert "\x1b" not in str(refusal.value)


@pytest.mark.parametrize("target", ["../outside/secret", "/etc/passwd", "src/app.py"])
def test_link_is_not_followed_wherever_it_leads(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    tree = DirectoryTree(root)
    with pytest.raises(ToolError, match="symbolic link"):
        tree.read("link")
    with pytest.raises(ToolError, match="symbolic link"):
        tree.write("link", b"x")
    assert (root.parent / "outside/secret").read_text() == "secret"
    assert tree.kind("link") == "symlink"


def test_linked_directory_is_not_followed(root: Path) -> None:
    (root / "link").symlink_to("../outside")
    tree = DirectoryTree(root)
    for act in (lambda: tree.read("link/secret"), lambda: tree.write("link/new", b"x")):
        with pytest.raises(ToolError, match="links are not followed"):
            act()
    assert not (root.parent / "outside/new").exists()
    assert tree.walk() == ("src/app.py",)


def test_deleting_a_link_leaves_its_target(root: Path) -> None:
    (root / "link").symlink_to("../outside/secret")
    DirectoryTree(root).delete("link")
    assert (root.parent / "outside/secret").exists()
    assert not (root / "link").is_symlink()


def test_file_is_deleted_and_a_directory_is_not(root: Path) -> None:
    tree = DirectoryTree(root)
    tree.delete("src/app.py")
    assert not tree.exists("src/app.py")
    with pytest.raises(ToolError, match="is a directory"):
        tree.delete("src")
    with pytest.raises(ToolError, match="There is no"):
        tree.delete("src/app.py")


def test_pipe_socket_and_device_are_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
        tree = DirectoryTree(root)
        for name in ("pipe", "socket"):
            with pytest.raises(ToolError, match="pipe, socket or device"):
                tree.read(name)
            with pytest.raises(ToolError, match="pipe, socket or device"):
                tree.write(name, b"x")
            assert tree.kind(name) == "other"
        assert tree.walk() == ("src/app.py",)


def test_file_with_a_second_name_is_not_written(root: Path) -> None:
    os.link(root.parent / "outside/secret", root / "hard")
    with pytest.raises(ToolError, match="hard links"):
        DirectoryTree(root).write("hard", b"x")
    assert (root.parent / "outside/secret").read_text() == "secret"


def test_mode_of_a_rewritten_file_is_kept(root: Path) -> None:
    (root / "tool.sh").write_text("#!/bin/sh\n")
    (root / "tool.sh").chmod(0o754)
    DirectoryTree(root).write("tool.sh", b"#!/bin/sh\nexit 0\n")
    assert stat.S_IMODE((root / "tool.sh").stat().st_mode) == 0o754


def test_set_user_id_bit_does_not_survive_a_write(root: Path) -> None:
    (root / "tool").write_text("x")
    (root / "tool").chmod(0o4755)
    DirectoryTree(root).write("tool", b"y")
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o755


def test_new_files_belong_to_the_owner_of_the_workspace(root: Path) -> None:
    if os.geteuid() == 0:
        os.chown(root, 65534, 65534)
    DirectoryTree(root).write("a/b", b"x")
    assert (root / "a").stat().st_uid == (root / "a/b").stat().st_uid == root.stat().st_uid


def test_nothing_half_written_stays_when_the_disk_is_full(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safe_walk, "write_all", full)
    with pytest.raises(Paused) as pause:
        DirectoryTree(root).write("src/app.py", b"x")
    assert pause.value.reason == "disk"
    assert [path.name for path in (root / "src").iterdir()] == ["app.py"]
    assert (root / "src/app.py").read_text() == "print(1)\n"


def test_leftover_of_a_killed_engine_does_not_stop_a_write(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_numbers", iter([7, 8]))
    (root / f".mimir-{os.getpid()}-7.tmp").write_text("left over")
    DirectoryTree(root).write("f", b"x")
    assert (root / "f").read_bytes() == b"x"


def test_walk_is_sorted_and_filtered(root: Path) -> None:
    for name in ("b.py", "a.py", "z/c.py", "z/.git/config", "odd\nname.py", "z/d.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / os.fsdecode(b"\xff.py")).write_text("")
    tree = DirectoryTree(root)
    assert tree.walk("*.py") == ("a.py", "b.py", "odd\nname.py", "\udcff.py")
    assert tree.walk("z/**") == ("z/c.py", "z/d.txt")
    assert tree.walk("**/*.py", limit=2) == ("a.py", "b.py")
    assert tree.walk("z/c.py") == ("z/c.py",)
    with pytest.raises(ToolError, match="points out"):
        tree.walk("../*")


def test_walk_reads_paths_longer_than_the_system_takes(root: Path) -> None:
    name = "d" * 100
    here = os.open(root, os.O_RDONLY)
    for _ in range(60):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    assert DirectoryTree(root).walk("**/leaf") == (f"{name}/" * 60 + "leaf",)
    assert DirectoryTree(root).read(f"{name}/" * 60 + "leaf") == b""


def test_walk_is_limited_in_depth(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_DEPTH", 2)
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/in").write_text("")
    (root / "a/b/c/out").write_text("")
    assert DirectoryTree(root).walk("a/**") == ("a/b/in",)


def test_endless_tree_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_ENTRIES", 1)
    with pytest.raises(ToolError, match="more than 1 entries"):
        DirectoryTree(root).walk()


def test_hidden_names_are_absent_from_the_tree(root: Path) -> None:
    (root / "chains").mkdir()
    (root / "chains/plan.md").write_text("reasoning")
    tree = DirectoryTree(root, hidden=["chains"])
    assert tree.walk() == ("src/app.py",)
    with pytest.raises(ToolError, match="not part of the workspace"):
        tree.read("./chains/plan.md")


def test_lost_workspace_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="cannot be opened"):
        DirectoryTree(tmp_path / "gone").read("a")
