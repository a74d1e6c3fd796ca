"""The base is the user's directory as it is, and that directory stays unchanged."""

import os
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.history import GitHistory
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory

HIDDEN = ("chains", "generated-agents", "preambles")


async def names(history: GitHistory, base: BaseCommit) -> set[str]:
    return set(await history.paths(base.tree))


def state(project: Path) -> tuple[str, ...]:
    """The git state of the user: status, stash, refs, index."""
    return (
        git(project, "status", "--porcelain"),
        git(project, "stash", "list"),
        git(project, "for-each-ref", "refs/heads", "refs/tags"),
        git(project, "ls-files", "--stage"),
    )


async def test_base_of_a_clean_project_is_the_users_commit(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    base = await (await open_history(tmp_project)).base("r1")
    assert base.commit == base.head == git(tmp_project, "rev-parse", "HEAD")
    assert base.branch == "main"
    assert base.warnings == ()
    assert git(tmp_project, "rev-parse", "refs/mimir/base/r1") == base.commit


async def test_dirty_tree_is_the_base_and_stays_as_it_is(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"calc.py": "staged\n", "new.py": "new\n", "README.md": "# Changed\n"})
    git(tmp_project, "add", "calc.py")
    write_files(tmp_project, {"calc.py": "staged, then changed\n"})
    (tmp_project / "pyproject.toml").unlink()
    (tmp_project / ".mimir").mkdir()
    before = state(tmp_project)
    history = await open_history(tmp_project)
    base = await history.base("r1")
    assert state(tmp_project) == before
    assert await history.file(base.tree, "calc.py") == b"staged, then changed\n"
    assert await history.file(base.tree, "new.py") == b"new\n"
    assert await names(history, base) == {
        ".gitignore", "README.md", "calc.py", "new.py", "tests/test_calc.py"
    }  # fmt: skip
    assert git(tmp_project, "rev-parse", f"{base.commit}^") == base.head


async def test_ignored_and_secret_files_do_not_enter(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(
        tmp_project.parent / "home",
        {".gitconfig": "[core]\n\texcludesFile = ~/ignored\n", "ignored": "global.env\n"},
    )
    write_files(
        tmp_project,
        {
            ".git/info/exclude": "secret.env\n",
            "secret.env": "KEY=1",
            "global.env": "KEY=1",
            ".env": "KEY=1",
            "__pycache__/x.pyc": "x",
            "sub/.gitignore": "*.log\n!kept.log\n/here\n",
            "sub/a.log": "x",
            "sub/kept.log": "x",
            "sub/here": "x",
            "sub/deep/here": "x",
            ".venv/lib/x.py": "x",
        },
    )
    history = await open_history(tmp_project)
    base = await history.base("r1")
    added = await names(history, base) - set(git(tmp_project, "ls-files").split("\n"))
    assert added == {"sub/.gitignore", "sub/kept.log", "sub/deep/here"}


async def test_global_ignore_file_of_the_default_place_is_honoured(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project.parent / "home", {".config/git/ignore": "global.env\n"})
    write_files(tmp_project, {"global.env": "KEY=1"})
    history = await open_history(tmp_project)
    assert "global.env" not in await names(history, await history.base("r1"))


async def test_ignore_rule_of_the_user_overrides_the_defaults(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {".gitignore": "!.env\n", ".env": "PORT=1"})
    history = await open_history(tmp_project)
    assert ".env" in await names(history, await history.base("r1"))


async def test_tracked_file_stays_although_it_is_ignored(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"kept.log": "x", ".gitignore": "*.log\n.mimir/\n"})
    git(tmp_project, "add", "--force", "kept.log")
    history = await open_history(tmp_project)
    assert "kept.log" in await names(history, await history.base("r1"))


async def test_hidden_names_are_left_out_even_if_they_are_tracked(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(
        tmp_project,
        {
            "chains/a/chain-output.md": "reasoning",
            "preambles/pm.md": "x",
            "mimir.toml": "",
            "src/chains/x": "",
            ".gitignore": "!chains/\n!.mimir/\n",
        },
    )
    git(tmp_project, "add", "chains")
    history = await open_history(tmp_project)
    found = await names(history, await history.base("r1", hidden=HIDDEN))
    assert not {path for path in found if path.startswith((".mimir", "chains", "preambles"))}
    assert {"mimir.toml", "src/chains/x"} <= found


async def test_plain_directory_works_the_same_way(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = tmp_path / "plain"
    write_files(
        project,
        {"a.py": "x", ".env": "KEY=1", "node_modules/m/i.js": "x", "venv/x": "x", ".gitignore": "*.log\n", "b.log": "x"},
    )  # fmt: skip
    history = await open_history(project)
    base = await history.base("r1")
    assert await names(history, base) == {"a.py", ".gitignore"}
    assert (base.head, base.branch) == (None, None)
    assert not history.is_repository
    assert not (project / ".git").exists()


async def test_empty_directory_has_an_empty_base(tmp_path: Path, open_history: OpenHistory) -> None:
    (tmp_path / "empty").mkdir()
    history = await open_history(tmp_path / "empty")
    assert await names(history, await history.base("r1")) == set()


async def test_repository_without_commits(tmp_path: Path, open_history: OpenHistory) -> None:
    project = tmp_path / "fresh"
    write_files(project, {"a.py": "x"})
    git(project, "init", "--quiet", "--initial-branch=trunk")
    history = await open_history(project)
    base = await history.base("r1")
    assert (base.head, base.branch) == (None, "trunk")
    assert await names(history, base) == {"a.py"}
    assert git(project, "cat-file", "-t", "refs/mimir/base/r1") == "commit"


async def test_detached_head(tmp_project: Path, open_history: OpenHistory) -> None:
    git(tmp_project, "checkout", "--quiet", "--detach")
    base = await (await open_history(tmp_project)).base("r1")
    assert base.branch is None
    assert base.head == base.commit


@pytest.mark.parametrize("other", ["refs/tags/main", "refs/heads/HEAD", "refs/remotes/main/HEAD"])
async def test_branch_has_the_unambiguous_name_of_git(
    tmp_project: Path, open_history: OpenHistory, other: str
) -> None:
    git(tmp_project, "update-ref", other, "HEAD")
    base = await (await open_history(tmp_project)).base("r1")
    assert base.branch == git(tmp_project, "symbolic-ref", "--short", "HEAD")
    assert base.commit == base.head == git(tmp_project, "rev-parse", "refs/heads/main")


async def test_run_is_served_where_its_base_is_pinned(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    base = await history.base("r1")
    for asked in (history, await open_history(tmp_project)):
        assert await asked.serve("r1", base.commit)
        assert not await asked.serve("r1", base.tree)
        assert not await asked.serve("r2", base.commit)


async def test_linked_work_tree(tmp_project: Path, open_history: OpenHistory) -> None:
    linked = tmp_project.parent / "linked tree"
    git(tmp_project, "worktree", "add", "--quiet", "-b", "side", str(linked))
    write_files(linked, {"only.py": "x"})
    history = await open_history(linked)
    base = await history.base("r1")
    assert base.branch == "side"
    assert "only.py" in await names(history, base)
    assert git(tmp_project, "rev-parse", "refs/mimir/base/r1") == base.commit


async def test_shallow_repository(tmp_project: Path, open_history: OpenHistory) -> None:
    write_files(tmp_project, {"second.py": "x"})
    git(tmp_project, "add", "--all")
    git(tmp_project, "commit", "--quiet", "--message", "Second")
    shallow = tmp_project.parent / "shallow"
    git(tmp_project, "clone", "--quiet", "--depth=1", tmp_project.as_uri(), str(shallow))
    write_files(shallow, {"dirty.py": "x"})
    history = await open_history(shallow)
    base = await history.base("r1")
    child = await history.commit(base.tree, [base.commit], "child")
    assert (await history.merge(base.commit, child)).tree == base.tree
    assert await history.branch("r1", child) == "mimir/r1"
    await history.view(child)


async def test_unusual_file_names_are_in_the_base(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = make_project(tmp_path / "a project\nwith 'odd' \"names\"")
    odd = [
        "with space",
        "line\nbreak",
        "quote'\"s",
        "-dash",
        ":colon",
        "ümlaut",
        "back\\slash",
        "git~1",
    ]
    write_files(project, dict.fromkeys(odd, "x"))
    (project / os.fsdecode(b"bytes\xff\xfe")).write_text("x")
    history = await open_history(project)
    base = await history.base("r1")
    assert {*odd, os.fsdecode(b"bytes\xff\xfe")} <= await names(history, base)
    assert await history.file(base.tree, "line\nbreak") == b"x"
    where = tmp_path / "checkout"
    await history.checkout(base.tree, where)
    assert (where / os.fsdecode(b"bytes\xff\xfe")).read_text() == "x"


async def test_line_endings_and_keywords_stay_as_the_bytes_on_the_disk(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(
        tmp_project, {".gitattributes": "* text=auto eol=crlf ident\n", "w.txt": "a\r\n$Id$\nb\n"}
    )
    history = await open_history(tmp_project)
    base = await history.base("r1")
    assert await history.file(base.tree, "w.txt") == b"a\r\n$Id$\nb\n"
    await history.checkout(base.tree, tmp_project.parent / "out")
    assert (tmp_project.parent / "out/w.txt").read_bytes() == b"a\r\n$Id$\nb\n"


async def test_submodule_stays_with_a_warning(tmp_project: Path, open_history: OpenHistory) -> None:
    inner = make_project(tmp_project.parent / "inner")
    git(
        tmp_project, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner), "lib/inner"
    )  # fmt: skip
    git(tmp_project, "commit", "--quiet", "--message", "Add a submodule")
    history = await open_history(tmp_project)
    base = await history.base("r1")
    assert base.commit == base.head
    assert any("Submodules" in warning and "lib/inner" in warning for warning in base.warnings)


async def test_file_behind_a_filter_stays_a_pointer_with_a_warning(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    write_files(tmp_project, {"big.bin": pointer})
    git(tmp_project, "add", "big.bin")
    write_files(tmp_project, {".gitattributes": "*.bin filter=lfs\n"})
    git(tmp_project, "commit", "--quiet", "--message", "Big", "big.bin")
    (tmp_project / "big.bin").write_text("the whole large content")
    history = await open_history(tmp_project)
    base = await history.base("r1")
    assert await history.file(base.tree, "big.bin") == pointer.encode()
    assert any("big.bin" in warning for warning in base.warnings)


async def test_git_filter_of_the_user_is_not_run(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    ran = tmp_project.parent / "ran"
    for key in ("filter.x.clean", "core.fsmonitor"):
        git(tmp_project, "config", key, f"touch {ran}; cat")
    write_files(
        tmp_project, {".gitattributes": "*.py filter=x\n", "new.py": "x", ".git/hooks/reference-transaction": f"#!/bin/sh\ntouch {ran}\n"}
    )  # fmt: skip
    (tmp_project / ".git/hooks/reference-transaction").chmod(0o755)
    history = await open_history(tmp_project)
    base = await history.base("r1")
    await history.branch("r1", base.commit)
    assert not ran.exists()


async def test_repository_inside_the_project_is_left_out_with_a_warning(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    make_project(tmp_project / "vendor/full")
    (tmp_project / "vendor/empty").mkdir()
    git(tmp_project / "vendor/empty", "init", "--quiet")
    write_files(tmp_project, {"vendor/own.py": "x"})
    history = await open_history(tmp_project)
    base = await history.base("r1")
    found = {path for path in await names(history, base) if path.startswith("vendor")}
    assert found == {"vendor/own.py"}
    assert any("vendor/full" in text and "vendor/empty" in text for text in base.warnings)


async def test_sparse_checkout_deletes_nothing(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    git(tmp_project, "sparse-checkout", "set", "--no-cone", "/calc.py", "/.gitignore")
    assert not (tmp_project / "tests").exists()
    history = await open_history(tmp_project)
    base = await history.base("r1")
    assert base.commit == base.head


async def test_part_of_a_repository_is_a_project_of_its_own(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    top = make_project(tmp_path / "mono")
    write_files(
        top,
        {
            ".gitignore": "*.log\n/pkg/build/\n/build/\n.mimir/\n",
            "pkg/a.py": "x",
            "pkg/chains/x": "x",
            "other/b.py": "x",
        },
    )
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "Packages")
    write_files(top, {"pkg/new.py": "x", "pkg/x.log": "x", "pkg/build/o": "x", "other/dirty": "x"})
    history = await open_history(top / "pkg")
    base = await history.base("r1", hidden=HIDDEN)
    assert await names(history, base) == {"a.py", "new.py"}
    assert base.head == git(top, "rev-parse", "HEAD")


async def test_ignored_directory_inside_a_repository_is_a_plain_directory(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"scratch/demo/a.py": "x"})
    history = await open_history(tmp_project / "scratch/demo")
    assert not history.is_repository
    assert await names(history, await history.base("r1")) == {"a.py"}
    assert git(tmp_project, "for-each-ref", "refs/mimir") == ""


async def test_unreadable_file_is_named_and_the_rest_is_taken(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"closed": "x", "open": "x"})
    (tmp_project / "closed").chmod(0)
    history = await open_history(tmp_project)
    base = await history.base("r1")
    found = await names(history, base)
    assert "open" in found
    # Root reads files that are closed to others.
    named = any("closed" in warning for warning in base.warnings)
    assert ("closed" in found, named) == ((True, False) if os.geteuid() == 0 else (False, True))


async def test_garbage_collection_of_the_user_keeps_the_objects_of_a_run(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {"staged.py": "staged only\n"})
    git(tmp_project, "add", "staged.py")
    history = await open_history(tmp_project)
    base = await history.base("r1")
    git(tmp_project, "rm", "--quiet", "--force", "staged.py")
    write_files(tmp_project, {"calc.py": "amended\n"})
    git(tmp_project, "commit", "--quiet", "--all", "--amend", "--message", "Amended")
    git(tmp_project, "reflog", "expire", "--expire=now", "--all")
    git(tmp_project, "gc", "--quiet", "--prune=now")
    assert await history.file(base.tree, "staged.py") == b"staged only\n"
    assert await history.verify_objects([base.commit]) == []
    await history.checkout(base.commit, tmp_project.parent / "out")


async def test_same_project_gives_the_same_base_anywhere(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    made: set[str] = set()
    for place in ("one", "two"):
        write_files(tmp_path / place, {"a.py": "x", "d/b.py": "y"})
        made.add((await (await open_history(tmp_path / place)).base("r1")).commit)
    assert len(made) == 1


async def test_missing_git_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="Git is not installed"):
        await GitHistory.open(tmp_path, tmp_path / "h.git", program="no-such-git", home=tmp_path)


async def test_too_old_git_is_a_clear_error(tmp_path: Path) -> None:
    old = tmp_path / "old-git"
    old.write_text("#!/bin/sh\necho git version 2.30.2\n")
    old.chmod(0o755)
    with pytest.raises(WorkspaceError, match=r"needs 2\.38"):
        await GitHistory.open(tmp_path, tmp_path / "h.git", program=str(old), home=tmp_path)
