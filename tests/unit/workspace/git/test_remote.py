"""Objects of a run go through a remote to each process that needs them; only clones of the same project are accepted."""

from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace.git import remote as exchange
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.remote import GitRemote
from tests.support.projects import git, make_project

RUN = "run-1"


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "TRIES", 1)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "here", {"a.txt": "one\n"})


async def history_of(project: Path, remote: Path | str, name: str) -> GitHistory:
    where = GitRemote(url=str(remote), environment={"HOME": str(project.parent)}, name=name)
    return await GitHistory.open(project, project / ".mimir/work/history.git", remote=where)


def cloned(project: Path, name: str, *words: str) -> Path:
    git(project.parent, "clone", "--quiet", *words, project.as_uri(), name)
    return project.parent / name


async def joined(there: Path, remote: Path, base: str, name: str = "two") -> GitHistory:
    history = await history_of(there, remote, name)
    assert not await history.serve(RUN, base)
    assert await history.is_related(base)
    await history.adopt(RUN, base, head=base, hidden=(), rules="")
    return history


async def test_shared_commit_is_available_to_another_process(project: Path, remote: Path):
    (project / "a.txt").write_text("changed and never committed\n")
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    await here.share()
    there = await joined(cloned(project, "there"), remote, base.commit)
    where, index = project.parent / "workspace", project.parent / "index"

    await there.fill(base.commit, where, index)
    (where / "b.txt").write_text("two\n")
    taken = await there.snapshot(where, index)
    made = await there.commit(taken.tree, [base.commit], "b")
    await there.share()

    assert await here.file(made, "b.txt") == b"two\n"
    assert await here.file(made, "a.txt") == b"changed and never committed\n"
    assert there.is_away
    assert not here.is_away
    assert await here.verify_objects([made]) == []


async def test_tree_that_no_commit_holds_is_shared_too(project: Path, remote: Path):
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    where, index = project.parent / "workspace", project.parent / "index"
    await here.fill(base.commit, where, index)
    trees: list[str] = []
    for text in ("first\n", "second\n"):
        (where / "c.txt").write_text(text)
        trees.append((await here.snapshot(where, index)).tree)
        await here.share()
    there = await joined(cloned(project, "there"), remote, base.commit)

    assert [await there.file(tree, "c.txt") for tree in trees] == [b"first\n", b"second\n"]


async def test_fetched_objects_appear_together_so_that_no_commit_is_seen_before_its_tree(
    project: Path, remote: Path
):
    (project / "a.txt").write_text("changed\n")
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    await here.share()
    clone = cloned(project, "there")

    there = await joined(clone, remote, base.commit)

    # Git shows the objects of a pack all at once, others one after another: to a process that looks meanwhile, and after a kill.
    objects = clone / ".mimir/work/history.git/objects"
    alone = {path.parent.name + path.name for path in objects.glob("??/*")}
    assert {base.commit, await there.tree(base.commit)}.isdisjoint(alone)
    assert await there.file(base.commit, "a.txt") == b"changed\n"


async def test_packs_of_many_fetches_get_an_index_together(
    project: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(exchange, "UNINDEXED_PACKS", 3)
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    there = await joined(cloned(project, "there"), remote, base.commit)
    where, index = project.parent / "workspace", project.parent / "index"
    await here.fill(base.commit, where, index)
    packs = project.parent / "there/.mimir/work/history.git/objects/pack"
    indexed: list[bool] = []
    trees: list[str] = []
    for number in range(5):
        (where / "c.txt").write_text(f"{number}\n")
        trees.append((await here.snapshot(where, index)).tree)
        await here.share()
        assert await there.file(trees[-1], "c.txt") == f"{number}\n".encode()
        indexed.append((packs / "multi-pack-index").exists())

    assert indexed == [False, False, True, True, True]
    again = await history_of(project.parent / "there", remote, "three")
    texts = [await again.file(tree, "c.txt") for tree in trees]
    assert texts == [b"%d\n" % number for number in range(5)]


async def test_result_of_a_run_changes_no_branch_of_another_clone(project: Path, remote: Path):
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    await here.share()
    clone = cloned(project, "there")
    there = await joined(clone, remote, base.commit)

    await there.branch(RUN, base.commit)
    await here.branch(RUN, base.commit)

    assert git(clone, "branch", "--list", "mimir/*") == ""
    assert git(project, "branch", "--list", "mimir/*").strip() == f"mimir/{RUN}"


async def test_admitted_directory_is_recognised_later(project: Path, remote: Path):
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    await here.share()
    clone = cloned(project, "there")
    await joined(clone, remote, base.commit)

    again = await history_of(clone, remote, "three")

    assert await again.serve(RUN, base.commit)
    assert again.is_away
    assert not await again.serve(RUN, "0" * 40)


async def test_directory_without_a_common_commit_is_of_the_project_only_with_the_same_files(
    project: Path, remote: Path, tmp_path: Path
):
    here = await history_of(project, remote, "one")
    base = await here.base(RUN)
    await here.share()
    same, other = tmp_path / "same", tmp_path / "other"
    same.mkdir()
    (same / "a.txt").write_text("one\n")
    make_project(other, {"a.txt": "another\n"})
    found = []
    for number, directory in enumerate((same, other)):
        history = await history_of(directory, remote, f"p{number}")
        await history.serve(RUN, base.commit)
        found.append(await history.is_related(base.commit))

    assert found == [True, False]


async def test_clones_have_one_lineage_and_others_another(project: Path, tmp_path: Path):
    other = make_project(tmp_path / "other", {"b.txt": "x\n"})
    plain = tmp_path / "plain"
    plain.mkdir()
    clone, shallow = cloned(project, "clone"), cloned(project, "shallow", "--depth=1")
    (clone / "new.txt").write_text("more\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "More")
    found = [
        await (await history_of(one, "", "x")).lineage() for one in (project, clone, other, plain)
    ]

    assert found[0] == found[1] != ""
    assert found[2] not in ("", found[0])
    assert found[3] == ""
    if (shallow / ".git/shallow").exists():  # a history of one commit is whole at depth one
        assert await (await history_of(shallow, "", "x")).lineage() == ""


async def test_remote_that_cannot_be_reached_is_named_without_its_password(project: Path):
    here = await history_of(project, "https://me:hunter22@127.0.0.1:9/x.git", "one")
    await here.base(RUN)

    with pytest.raises(WorkspaceError) as error:
        await here.share()

    assert "127.0.0.1:9/x.git" in str(error.value)
    assert "hunter22" not in f"{error.value} {error.value.next_step}"


async def test_url_that_would_run_a_command_is_refused(project: Path, tmp_path: Path):
    here = await history_of(project, f"ext::sh -c touch% {tmp_path}/ran", "one")
    await here.base(RUN)

    with pytest.raises(WorkspaceError):
        await here.share()

    assert not (tmp_path / "ran").exists()


async def test_object_missing_everywhere_is_named(project: Path, remote: Path):
    here = await history_of(project, remote, "one")
    await here.base(RUN)

    with pytest.raises(WorkspaceError, match="0123456789" * 4):
        await here.file("0123456789" * 4, "a.txt")
