"""Commits in the user's repository change exactly the lines and modes that the work changed."""

from pathlib import Path
from typing import Literal

import pytest

from tests.support.projects import git, make_project
from tests.support.whole_run import holds, plan, step, travel, worker, writes

ATTRIBUTES = (
    "*.txt text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n*.sh text eol=lf\n"
)
STORED = {
    "windows.txt": "one\ntwo\n",
    "same.txt": "x\ny\n",
    "version.id": "$Id$\nsecond\n",
    "wide.u16": "h\0i\0\n\0",
    "run.sh": "echo hi\n",
}


def make_user_project(where: Path, **settings: str) -> Path:
    """A clean clone, so that its files have the form of the work tree."""
    origin = make_project(where / "origin", {".gitattributes": ATTRIBUTES, **STORED})
    project = where / "project"
    given = [word for name, value in settings.items() for word in ("-c", f"core.{name}={value}")]
    git(where, "clone", "--quiet", *given, str(origin), str(project))
    return project


@pytest.mark.parametrize("apply", ["never", "commit"])
@pytest.mark.parametrize("settings", [{}, {"autocrlf": "true", "fileMode": "false"}], ids=str)
async def test_commit_has_the_stored_form_of_files(
    tmp_path: Path, settings: dict[str, str], apply: Literal["never", "commit"]
):
    project = make_user_project(tmp_path, **settings)
    if settings:
        (project / "same.txt").chmod(0o755)
    assert git(project, "status", "--porcelain") == ""
    second = (project / "version.id").read_text().replace("second", "more")
    turn = worker(
        "a",
        writes("windows.txt", "one\r\n2\r\n"),
        writes("version.id", second),
        writes("new.txt", "fresh\r\n"),
        "Done.",
    )
    task = step("a", checks=(holds("windows.txt", "^2"),))

    journey = await travel(project, plan(task), [turn], apply=apply)

    assert journey.statuses == {"a": "completed"}, journey.report
    [branch] = git(project, "branch", "--list", "mimir/*", "--format=%(refname)").split()
    before = "HEAD~1" if apply == "commit" else "HEAD"
    made = git(project, "diff", "--numstat", before, branch).splitlines()
    assert made == ["1\t0\tnew.txt", "1\t1\tversion.id", "1\t1\twindows.txt"]
    if apply == "commit":
        assert git(project, "diff", "--stat", "HEAD", branch) == ""
        assert git(project, "status", "--porcelain", "--untracked-files=no") == ""


async def test_file_that_git_cannot_convert_keeps_the_bytes_of_the_work(tmp_path: Path):
    project = make_user_project(tmp_path)
    # Three bytes are no UTF-16.
    turn = worker("a", writes("wide.u16", "abc"), writes("windows.txt", "one\r\n2\r\n"), "Done.")
    task = step("a", checks=(holds("windows.txt", "^2"),))

    journey = await travel(project, plan(task), [turn])

    assert journey.statuses == {"a": "completed"}, journey.report
    [branch] = git(project, "branch", "--list", "mimir/*", "--format=%(refname)").split()
    assert git(project, "cat-file", "blob", f"{branch}:wide.u16") == "abc"
    assert git(project, "cat-file", "blob", f"{branch}:windows.txt") == "one\n2"
