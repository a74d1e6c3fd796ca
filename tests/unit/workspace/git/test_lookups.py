"""Reads of an audit from the history: trees of many ids at once, a commit's message, objects below a tree."""

from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from tests.support.projects import write_files
from tests.unit.workspace.conftest import OpenHistory, Place


@pytest.fixture
async def place(tmp_path: Path, open_history: OpenHistory) -> Place:
    project = tmp_path / "plain"
    write_files(project, {"calc.py": "x\n"})
    history = await open_history(project)
    made = Place(history, await history.base("r1"), tmp_path / "work/1.1")
    await made.fill()
    return made


def damage(place: Place, id: str) -> None:
    path = place.history._hidden.directory / "objects" / id[:2] / id[2:]
    path.chmod(0o644)
    path.write_bytes(b"no object")


async def test_trees_are_returned_in_request_order(place: Place) -> None:
    base = place.base
    asked = [
        base.tree,
        "0" * 40,
        base.commit,
        "",
        base.tree,
        "HEAD",
        f"{base.commit}\n{base.commit}",
    ]
    assert await place.history.trees(asked) == [base.tree, "", base.tree, "", base.tree, "", ""]
    assert await place.history.trees([]) == []


async def test_damaged_object_has_no_tree_and_takes_no_other_with_it(place: Place) -> None:
    base = place.base
    later = await place.history.commit(base.tree, [base.commit], "later")
    damage(place, later)
    assert await place.history.trees([later, base.commit, base.tree]) == ["", base.tree, base.tree]


async def test_message_of_a_commit_is_complete(place: Place) -> None:
    text = "Title\n\nMimir-Run: r\nMimir-Seal: 12\n"
    commit = await place.history.commit(place.base.tree, [place.base.commit], text)
    assert await place.history.message(commit) == text


@pytest.mark.parametrize("id", ["0" * 40, "HEAD", "--help", ""])
async def test_message_of_no_commit_is_refused(place: Place, id: str) -> None:
    with pytest.raises(WorkspaceError):
        await place.history.message(id)


async def test_damage_below_a_tree_is_named_without_any_commit(place: Place) -> None:
    assert await place.history.verify_objects([], [place.base.tree]) == []
    (entry,) = await place.history.entries(place.base.tree)
    damage(place, entry.blob)
    (problem,) = await place.history.verify_objects([], [place.base.tree])
    assert problem.startswith(f"blob {entry.blob[:12]} (calc.py) was changed")
