"""Trees compared, merged and put together without any work tree."""

import asyncio
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace import tree_removal
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.trees import TreeChange
from tests.support.projects import git, make_project, write_files
from tests.unit.workspace.conftest import OpenHistory, Place

LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
async def history(tmp_path: Path, open_history: OpenHistory) -> GitHistory:
    project = tmp_path / "plain"
    project.mkdir()
    return await open_history(project)


async def made(history: GitHistory, room: Path, files: dict[str, str]) -> str:
    """Return the tree that holds exactly these files."""
    where, index = room / "made", room / "made.index"
    tree_removal.remove_tree(where)
    await history.fill((await history.base("empty")).tree, where, index)
    write_files(where, files)
    return (await history.snapshot(where, index)).tree


@pytest.fixture
async def base(history: GitHistory, tmp_path: Path) -> str:
    return await made(history, tmp_path, {"f": LINES, "g": "g\n", "d/x": "x\n"})


async def test_edits_of_one_file_that_do_not_overlap_are_merged(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(
        history, tmp_path, {"f": LINES.replace("line 1\n", "ONE\n"), "g": "g\n", "d/x": "x\n"}
    )
    b = await made(
        history, tmp_path, {"f": LINES.replace("line 20\n", "TWENTY\n"), "g": "g\n", "d/x": "x\n"}
    )
    merge = await history.merge(a, b, base)
    assert merge.conflicts == ()
    merged = (await history.file(merge.tree, "f") or b"").decode()
    assert merged.startswith("ONE\n")
    assert merged.endswith("TWENTY\n")


async def test_edits_of_the_same_line_are_a_conflict_with_markers_of_fixed_names(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(history, tmp_path, {"f": "A\n" + LINES, "g": "g\n", "d/x": "x\n"})
    b = await made(history, tmp_path, {"f": "B\n" + LINES, "g": "g\n", "d/x": "x\n"})
    merge = await history.merge(a, b, base)
    assert merge.conflicts == ("f",)
    text = (await history.file(merge.tree, "f") or b"").decode()
    assert text.startswith("<<<<<<< head\nA\n=======\nB\n>>>>>>> attempt\n")
    named = await history.merge(a, b, base, labels=("merged", "yours"))
    assert (await history.file(named.tree, "f") or b"").startswith(b"<<<<<<< merged\n")


async def test_commits_are_merged_over_their_common_parent(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    root = await history.commit(base, [], "root")
    one = await history.commit(
        await made(history, tmp_path, {"f": LINES, "g": "G\n", "d/x": "x\n"}), [root], "one"
    )
    two = await history.commit(
        await made(history, tmp_path, {"f": LINES, "g": "g\n", "d/x": "x\n", "new": "n"}),
        [root],
        "two",
    )
    merge = await history.merge(one, two)
    assert merge.conflicts == ()
    assert await history.file(merge.tree, "g") == b"G\n"
    assert await history.file(merge.tree, "new") == b"n"
    assert await history.merge(one, one) == type(merge)(tree=await history.tree(one), conflicts=())


async def test_merged_tree_does_not_depend_on_order_or_messages(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    root = await history.commit(base, [], "root")
    a = await made(history, tmp_path, {"f": LINES, "g": "A\n", "d/x": "x\n"})
    b = await made(history, tmp_path, {"f": LINES, "g": "B\n", "d/x": "x\n"})
    trees = set[str]()
    for message in ("one", "two"):
        ours = await history.commit(a, [root], message)
        trees.add((await history.merge(ours, await history.commit(b, [root], message))).tree)
    assert len(trees) == 1


async def test_file_against_directory_is_a_conflict(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(history, tmp_path, {"f": LINES, "g": "g\n", "d": "now a file\n"})
    b = await made(history, tmp_path, {"f": LINES, "g": "g\n", "d/x": "x\n", "d/y": "y\n"})
    merge = await history.merge(a, b, base)
    assert merge.conflicts
    assert not any(len(path.partition("~")[2]) >= 12 for path in merge.conflicts)


async def test_removed_against_changed_is_a_conflict(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(history, tmp_path, {"f": LINES, "d/x": "x\n"})
    b = await made(history, tmp_path, {"f": LINES, "g": "changed\n", "d/x": "x\n"})
    assert (await history.merge(a, b, base)).conflicts == ("g",)


async def test_renames_are_not_guessed(history: GitHistory, base: str, tmp_path: Path) -> None:
    a = await made(history, tmp_path, {"renamed": LINES, "g": "g\n", "d/x": "x\n"})
    b = await made(history, tmp_path, {"f": LINES + "more\n", "g": "g\n", "d/x": "x\n"})
    assert (await history.merge(a, b, base)).conflicts == ("f",)


async def test_merge_driver_that_a_worker_names_is_not_used(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    attributes = {".gitattributes": "f merge=union\n", "g": "g\n", "d/x": "x\n"}
    a = await made(history, tmp_path, {"f": "A\n" + LINES, **attributes})
    b = await made(history, tmp_path, {"f": "B\n" + LINES, **attributes})
    assert (await history.merge(a, b, base)).conflicts == ("f",)


async def test_merge_of_a_missing_commit_is_an_error_and_no_conflict(
    history: GitHistory, base: str
) -> None:
    root = await history.commit(base, [], "root")
    with pytest.raises(WorkspaceError):
        await history.merge(root, "0" * 40)
    with pytest.raises(WorkspaceError, match="no commit or tree"):
        await history.merge(root, "0" * 40, root)


async def test_change_has_path_modes_and_blobs(place: Place) -> None:
    write_files(place.where, {"calc.py": "new\n", "added": "a\n"})
    (place.where / "old").unlink()
    tree = (await place.history.snapshot(place.where, place.index)).tree
    changes = {one.path: one for one in await place.history.diff_trees(place.base.commit, tree)}
    assert changes["added"].status == "added"
    assert changes["added"].old is None
    assert changes["old"].new is None
    assert changes["calc.py"] == TreeChange(
        path="calc.py",
        status="modified",
        old_blob=changes["calc.py"].old_blob,
        new_blob=changes["calc.py"].new_blob,
        old_mode="100644",
        mode="100644",
    )
    assert await place.history.blob(changes["calc.py"].new_blob or "") == b"new\n"


async def test_diff_is_bounded_with_a_mark(place: Place) -> None:
    write_files(place.where, {"calc.py": "word\n" * 5000})
    tree = (await place.history.snapshot(place.where, place.index)).tree
    whole = await place.history.diff(place.base.tree, tree)
    assert whole.startswith("diff --git a/calc.py b/calc.py")
    cut = await place.history.diff(place.base.tree, tree, max_bytes=1000)
    assert len(cut) < 1200
    assert "cut here" in cut
    assert await place.history.diff(place.base.tree, tree, paths=["README.md"]) == ""


async def test_file_that_is_not_there_is_none(place: Place) -> None:
    for path in ("nothing", "sub", "sub/nothing", "../x", "*"):
        assert await place.history.file(place.base.tree, path) is None


async def test_files_are_laid_over_a_tree_and_missing_ones_removed(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    other = await made(history, tmp_path, {"f": "other\n", "g": "other\n", "tests/t": "t\n"})
    laid = await history.with_files(base, other, ["g", "tests/**", "d"])
    assert await history.paths(laid) == ("f", "g", "tests/t")
    assert await history.file(laid, "f") == LINES.encode()
    assert await history.file(laid, "g") == b"other\n"


async def test_directory_takes_a_files_place_when_laid_over(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    other = await made(history, tmp_path, {"g/inner": "i\n"})
    laid = await history.with_files(base, other, ["g"])
    assert await history.paths(laid) == ("d/x", "f", "g/inner")
    assert await history.with_files(laid, base, ["g"]) == base


async def test_paths_are_filtered_by_globs(place: Place) -> None:
    assert await place.history.paths(place.base.commit, ["sub", "*.sh"]) == (
        "run.sh", "sub/deep/file", "sub/file"
    )  # fmt: skip


async def test_commit_depends_on_its_parts_only(history: GitHistory, base: str) -> None:
    one = await history.commit(base, [], "same\0 \ud800")
    assert one == await history.commit(base, [], "same\0 \ud800")
    assert one != await history.commit(base, [], "same", when=1)
    child = await history.commit(
        base, [await history.commit(base, [], "p", when=1_800_000_000)], "c"
    )
    said = git(history._hidden.directory, "show", "-s", "--format=%an <%ae> %ct", child)
    assert said == "mimir <mimir@localhost> 1800000000"


async def test_several_histories_work_in_one_repository_at_once(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    project = make_project(tmp_path / "shared")
    first, second = await asyncio.gather(open_history(project), open_history(project))
    one, two = await asyncio.gather(first.base("r1"), second.base("r2"))
    assert one.commit == two.commit
    await asyncio.gather(
        *(
            history.fill(one.commit, tmp_path / f"w{n}", tmp_path / f"w{n}.index")
            for n, history in enumerate((first, second, first, second))
        )
    )
    assert (tmp_path / "w3/calc.py").exists()


async def test_file_takes_a_directorys_place_without_conflict(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(history, tmp_path, {"f": LINES, "g": "g\n", "d": "now a file\n"})
    b = await made(history, tmp_path, {"f": LINES, "g": "changed\n", "d/x": "x\n"})
    for ours, theirs in ((a, b), (b, a)):
        merge = await history.merge(ours, theirs, base)
        assert merge.conflicts == ()
        assert await history.paths(merge.tree) == ("d", "f", "g")


async def test_changed_file_against_a_directory_of_its_name_keeps_both(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(history, tmp_path, {"f": LINES, "g/inner": "i\n", "d/x": "x\n"})
    b = await made(history, tmp_path, {"f": LINES, "g": "changed\n", "d/x": "x\n"})
    merge = await history.merge(a, b, base)
    assert merge.conflicts == ("g~attempt",)
    assert await history.file(merge.tree, "g~attempt") == b"changed\n"
    assert await history.file(merge.tree, "g/inner") == b"i\n"


async def test_both_adding_one_file_differently_is_a_conflict(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    common = {"f": LINES, "g": "g\n", "d/x": "x\n"}
    a = await made(history, tmp_path, {**common, "new": "a\n"})
    b = await made(history, tmp_path, {**common, "new": "b\n"})
    merge = await history.merge(a, b, base)
    assert merge.conflicts == ("new",)
    assert (
        await history.file(merge.tree, "new") == b"<<<<<<< head\na\n=======\nb\n>>>>>>> attempt\n"
    )


async def test_binary_file_changed_on_both_sides_stays_ours_in_conflict(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    a = await made(history, tmp_path, {"f": "a\0", "g": "g\n", "d/x": "x\n"})
    b = await made(history, tmp_path, {"f": "b\0", "g": "g\n", "d/x": "x\n"})
    merge = await history.merge(a, b, base)
    assert merge.conflicts == ("f",)
    assert await history.file(merge.tree, "f") == b"a\0"


async def test_unrelated_commits_can_be_merged(
    history: GitHistory, base: str, tmp_path: Path
) -> None:
    one = await history.commit(await made(history, tmp_path, {"a": "a"}), [], "one")
    two = await history.commit(await made(history, tmp_path, {"b": "b"}), [], "two")
    assert await history.paths((await history.merge(one, two)).tree) == ("a", "b")
