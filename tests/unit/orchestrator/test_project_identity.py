"""Which project a directory is, and that nothing is named before others can have it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.orchestrator import project_identity, project_ids
from mimir.store.publishing_store import PublishingStore
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.workspace.git.history import GitHistory
from tests.support.clock import FrozenClock
from tests.support.projects import git, make_project
from tests.support.stores import opened


@pytest.fixture
async def store(tmp_path: Path, frozen_clock: FrozenClock) -> AsyncIterator[SqliteStore]:
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as made:
        yield made


async def id_of(project: Path, store: SqliteStore) -> str:
    room = project / ".mimir"
    room.mkdir(exist_ok=True)
    history = await GitHistory.open(project, room / "work/history.git")
    return await project_identity.project_id(project, room, history, store)


async def test_clone_and_moved_project_keep_the_project_id(tmp_path: Path, store: SqliteStore):
    project = make_project(tmp_path / "here")
    git(tmp_path, "clone", "--quiet", project.as_uri(), "there")
    first = await id_of(project, store)
    assert await id_of(tmp_path / "there", store) == first

    git(project, "checkout", "--quiet", "--orphan", "anew")
    git(project, "commit", "--quiet", "--message", "Another beginning")
    moved = project.rename(tmp_path / "moved")

    assert await id_of(moved, store) == first
    assert project_ids.find_project_id(moved, moved / ".mimir") == first


async def test_directory_without_commits_is_identified_by_its_path(
    tmp_path: Path, store: SqliteStore
):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()

    found = [await id_of(one, store), await id_of(two, store)]

    assert found[0] != found[1]
    assert found[0] == project_ids.find_project_id(one, one / ".nothing")


async def test_project_stored_by_its_path_keeps_that_id(tmp_path: Path, store: SqliteStore):
    project = make_project(tmp_path / "here")
    before = project_ids.find_project_id(project, project / ".nothing")
    await store.write(lambda ops: ops.upsert("Project", [{"id": before, "name": "here"}]))

    assert await id_of(project, store) == before


async def test_write_that_cannot_be_published_is_rolled_back(store: SqliteStore):
    async def lost() -> None:
        raise WorkspaceError("The remote is gone.")

    publishing = PublishingStore(store, lost)

    with pytest.raises(WorkspaceError, match="gone"):
        await publishing.write(lambda ops: ops.upsert("Project", [{"id": "p", "name": "p"}]))
    assert await publishing.read(lambda reads: reads.get("Project", "p")) is None
