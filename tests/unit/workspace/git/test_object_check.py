"""A changed byte in any object of a result is found and named."""

import zlib
from pathlib import Path

import pytest

from tests.support.projects import git, write_files
from tests.unit.workspace.conftest import OpenHistory, Place


@pytest.fixture
async def place(tmp_path: Path, open_history: OpenHistory) -> Place:
    """A workspace of a plain directory, so that every object is the hidden repository's own."""
    project = tmp_path / "plain"
    write_files(project, {"calc.py": "x\n"})
    history = await open_history(project)
    made = Place(history, await history.base("r1"), tmp_path / "work/1.1")
    await made.fill()
    return made


@pytest.fixture
async def commit(place: Place) -> str:
    write_files(place.where, {"new/deep.py": "content\n", "calc.py": "changed\n"})
    tree = (await place.history.snapshot(place.where, place.index)).tree
    return await place.history.commit(tree, [place.base.commit], f"work in {place.where}")


@pytest.fixture
def objects(place: Place) -> Path:
    return place.history._hidden.directory / "objects"


def stored(objects: Path, id: str) -> Path:
    return objects / id[:2] / id[2:]


def changed(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


async def ids(place: Place, commit: str) -> dict[str, str]:
    """Return the new objects of a commit: commit, trees and blobs of the hidden repository by name."""
    tree = await place.history.tree(commit)
    blobs = {entry.path: entry.blob for entry in await place.history.entries(tree)}
    sub = git(place.history._hidden.directory, "rev-parse", f"{commit}:new")
    return {"commit": commit, "tree": tree, "sub": sub, "blob": blobs["new/deep.py"], "calc": blobs["calc.py"]}  # fmt: skip


async def test_unchanged_result_verifies(place: Place, commit: str) -> None:
    assert await place.history.verify_objects([commit, place.base.commit]) == []


async def test_any_changed_byte_of_any_object_is_found_and_the_object_named(
    place: Place, commit: str, objects: Path
) -> None:
    for name, id in (await ids(place, commit)).items():
        path = stored(objects, id)
        whole = path.read_bytes()
        for at in range(len(whole)):
            changed(path, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            problems = await place.history.verify_objects([commit])
            assert any(id[:12] in problem for problem in problems), (name, at)
        changed(path, whole)
    assert await place.history.verify_objects([commit]) == []


async def test_other_content_under_an_old_name_is_found(
    place: Place, commit: str, objects: Path
) -> None:
    blob = (await ids(place, commit))["blob"]
    changed(stored(objects, blob), zlib.compress(b"blob 8\0CONTENT\n"))
    (problem,) = await place.history.verify_objects([commit])
    assert problem.startswith(f"blob {blob[:12]} (new/deep.py) was changed")


async def test_cut_lengthened_and_missing_objects_are_found(
    place: Place, commit: str, objects: Path
) -> None:
    blob = (await ids(place, commit))["blob"]
    path = stored(objects, blob)
    whole = path.read_bytes()
    for data in (whole[:-1], whole + b"x", b""):
        changed(path, data)
        assert len(await place.history.verify_objects([commit])) == 1
    path.unlink()
    assert await place.history.verify_objects([commit]) == [
        f"blob {blob[:12]} (new/deep.py) is missing"
    ]


async def test_commit_that_never_was_is_missing(place: Place) -> None:
    assert await place.history.verify_objects(["1" * 40]) == [f"commit {'1' * 12} is missing"]
