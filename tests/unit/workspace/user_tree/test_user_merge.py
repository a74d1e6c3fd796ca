"""A result is merged with the user's changes since the start; only the same lines stop it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from mimir.workspace.git.history import GitHistory
from mimir.workspace.user_tree import apply
from mimir.workspace.user_tree.user_merge import UserMerge, find_overlaps, merge_user_files
from tests.support.projects import make_project, write_files
from tests.unit.workspace.conftest import OpenHistory

LINES = "".join(f"{n}\n" for n in range(12))
Files = Mapping[str, str | None]


async def merged(
    tmp_path: Path,
    open_history: OpenHistory,
    work: Files,
    mine: Files,
    *,
    markers: bool = False,
) -> tuple[Path, GitHistory, UserMerge]:
    project = make_project(tmp_path / "p", {"a": LINES, "b": "b\0", "c": "c\n"})
    history = await open_history(project)
    base = await history.base("r1")
    edits = {p: None if t is None else ("100644", t.encode()) for p, t in work.items()}
    result = await history.edit_files(base.tree, edits)
    write_files(project, {path: text for path, text in mine.items() if text is not None})
    for path in (path for path, text in mine.items() if text is None):
        (project / path).unlink()
    found = await merge_user_files(history, base.tree, result, project, markers=markers)
    return project, history, found


async def bring(project: Path, history: GitHistory, found: UserMerge) -> None:
    async def journal(steps: object) -> None:
        await asyncio.sleep(0)

    planned = await apply.plan(found.changes, project)
    assert await apply.apply(history, planned, project, journal=journal) == ()


async def test_other_lines_of_one_file_are_merged(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    work = {"a": LINES.replace("2\n", "two\n", 1), "new": "n\n"}

    project, history, found = await merged(
        tmp_path, open_history, work, {"a": f"{LINES}mine\n", "c": "mine\n"}
    )
    await bring(project, history, found)

    assert (found.conflicts, found.marked) == ((), ())
    assert (project / "a").read_text() == f"{work['a']}mine\n"
    assert [(project / name).read_text() for name in ("c", "new")] == ["mine\n", "n\n"]


@pytest.mark.parametrize(
    ("work", "mine", "why"),
    [
        ({"a": LINES.replace("5\n", "five\n")}, {"a": LINES.replace("5\n", "V\n")}, "(line 6)"),
        ({"a": None}, {"a": f"{LINES}mine\n"}, "was changed"),
        ({"a": f"{LINES}x\n"}, {"a": None}, "was changed"),
        ({"b": "c\0"}, {"b": "d\0"}, "was changed"),
        ({"new": "x\n"}, {"new": "y\n"}, "was changed"),
    ],
)
async def test_user_merge_conflict_is_named_and_plans_no_change(
    work: Files, mine: Files, why: str, tmp_path: Path, open_history: OpenHistory
) -> None:
    _, _, found = await merged(tmp_path, open_history, {**work, "c": "x\n"}, mine)

    [conflict] = found.conflicts
    assert conflict.path in work
    assert why in conflict.why
    assert found.changes == ()


async def test_markers_are_written_on_request_and_keep_the_users_lines(
    tmp_path: Path, open_history: OpenHistory
) -> None:
    work = {"a": LINES.replace("5\n", "five\n"), "b": "c\0", "c": "x\n"}

    project, history, found = await merged(
        tmp_path, open_history, work, {"a": LINES.replace("5\n", "V\n"), "b": "d\0"}, markers=True
    )
    await bring(project, history, found)

    assert found.marked == ("a", "b.mimir")
    assert "<<<<<<< yours\nV\n=======\nfive\n>>>>>>> mimir\n" in (project / "a").read_text()
    assert [(project / name).read_text() for name in ("b", "b.mimir", "c")] == ["d\0", "c\0", "x\n"]


def test_overlapping_lines_have_the_users_line_numbers() -> None:
    base = list("abcdefghij")

    assert find_overlaps(base, list("XYabcdEFghij"), list("abcdEfghij")) == ["7-8"]
    assert find_overlaps(base, list("Xbcdefghij"), list("abcdefghiJ")) == []
