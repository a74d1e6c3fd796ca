"""Files that git stores through a filter are found by the attributes of tree and repository."""

from pathlib import Path

from tests.support.projects import write_files
from tests.unit.workspace.conftest import OpenHistory


async def test_new_and_old_files_with_a_filter_are_found(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(
        tmp_project,
        {".gitattributes": "data/*.txt filter=rot -text\ndata/plain.txt -filter\n", "data/a.txt": "5\n"},
    )  # fmt: skip
    history = await open_history(tmp_project)
    base = await history.base("r1")
    bare = await history.edit_files(base.tree, {".gitattributes": None})
    paths = ("data/a.txt", "data/new.txt", "data/plain.txt", "calc.py")

    assert await history.filtered((base.tree,), paths) == paths[:2]
    assert await history.filtered((base.tree, bare), paths) == paths[:2]
    assert await history.filtered((bare,), paths) == ()


async def test_attributes_of_the_repository_alone_count_too(
    tmp_project: Path, open_history: OpenHistory
) -> None:
    write_files(tmp_project, {".git/info/attributes": "*.bin filter=lfs\n"})
    history = await open_history(tmp_project)
    base = await history.base("r1")

    assert await history.filtered((base.tree,), ("a.bin", "calc.py")) == ("a.bin",)
