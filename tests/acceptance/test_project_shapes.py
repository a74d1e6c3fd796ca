"""Projects of every shape: repositories as people have them, and names of any bytes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import invariants
from tests.support.invariants import listing
from tests.support.midrun_actions import Meanwhile
from tests.support.projects import CALCULATOR, git, make_project, write_files
from tests.support.run_facts import Outside
from tests.support.whole_run import (
    Part,
    calls,
    check,
    holds,
    plan,
    shell,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

TASK = plan(step("a"))
WROTE: list[Part] = [wrote("a")]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Actions during the run."""
    return Meanwhile(monkeypatch)


# Shapes.


def detached(where: Path) -> Path:
    project = make_project(where)
    write_files(project, {"README.md": "# Two\n"})
    git(project, "commit", "--quiet", "--all", "--message", "Two")
    git(project, "checkout", "--quiet", "--detach", "HEAD~1")
    return project


def unborn(where: Path) -> Path:
    where.mkdir()
    git(where, "init", "--quiet")
    write_files(where, CALCULATOR)
    return where


def plain(where: Path) -> Path:
    write_files(where, CALCULATOR)
    return where


def empty(where: Path) -> Path:
    where.mkdir()
    return where


def part_of_a_repository(where: Path) -> Path:
    top = make_project(where, {"other/README.md": "# Other\n"})
    write_files(top / "here", CALCULATOR)
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "Here")
    return top / "here"


def shallow(where: Path) -> Path:
    source = detached(where.with_name("source"))
    git(source, "checkout", "--quiet", "main")
    git(where.parent, "clone", "--quiet", "--depth=1", f"file://{source}", str(where))
    return where


def with_submodule(where: Path) -> Path:
    library = make_project(where.with_name("library"), {"lib.py": "X = 1\n"})
    project = make_project(where)
    allowed = ("-c", "protocol.file.allow=always")
    git(project, *allowed, "submodule", "--quiet", "add", str(library), "vendor/lib")
    git(project, "commit", "--quiet", "--message", "Library")
    return project


def linked_work_tree(where: Path) -> Path:
    main = make_project(where.with_name("main"))
    git(main, "worktree", "add", "--quiet", str(where), "-b", "beside")
    return where


def with_failing_hooks(where: Path) -> Path:
    project = make_project(where)
    for name in (
        *("pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout"),
        *("reference-transaction", "post-index-change", "pre-receive", "update", "post-merge"),
    ):
        hook = project / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{where.with_name('hook-ran')}'\nexit 1\n")
        hook.chmod(0o755)
    return project


def with_hostile_settings(where: Path) -> Path:
    """A repository whose own settings would run programs, sign, or change bytes."""
    project = make_project(where)
    witness = where.with_name("hook-ran")
    for name, value in {
        "core.fsmonitor": f"touch '{witness}'",
        "core.autocrlf": "true",
        "commit.gpgSign": "true",
        "gpg.program": "/bin/false",
        "filter.evil.clean": f"touch '{witness}'",
        "filter.evil.smudge": f"touch '{witness}'",
        "diff.external": f"touch '{witness}'",
        "merge.conflictStyle": "diff3",
    }.items():
        git(project, "config", name, value)
    (project / ".git/info/attributes").write_text("*.md filter=evil\n* diff=evil\n")
    return project


SHAPES: list[Callable[[Path], Path]] = [
    detached,
    unborn,
    plain,
    empty,
    part_of_a_repository,
    shallow,
    with_submodule,
    linked_work_tree,
    with_failing_hooks,
    with_hostile_settings,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
async def test_a_project_of_any_shape_gets_its_result(
    shape: Callable[[Path], Path], tmp_path: Path
):
    project = shape(tmp_path / "project")
    before = listing(project)
    refs = refs_of(project)
    parts = [worker("a", shell("git log --oneline -1; ls"), writes("a.txt", "a\n"), "Done.")]

    journey = await travel(project, TASK, parts, apply="auto")

    assert journey.statuses == {"a": "completed"}
    assert journey.ending.exit_code == 0, journey.report
    assert (project / "a.txt").read_bytes() == b"a\n"
    assert {k: v for k, v in listing(project).items() if k in before} == before
    assert {k: v for k, v in refs_of(project).items() if "mimir/" not in k} == refs
    assert not (tmp_path / "hook-ran").exists()
    assert invariants.broken(journey.facts, Outside(before=before)) == []


def refs_of(project: Path) -> dict[str, str]:
    """Return the refs of a user's repository, and its checked out commit."""
    if not any((place / ".git").exists() for place in (project, project.parent)):
        return {}
    said = git(project, "for-each-ref", "--format=%(refname) %(objectname)")
    head = (project / ".git/HEAD").read_text() if (project / ".git").is_dir() else ""
    return {"HEAD": head, **dict(line.split(" ") for line in said.splitlines())}


async def test_user_may_collect_garbage_and_amend_during_the_run(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path, CALCULATOR)
    write_files(project, {"dirty.txt": "uncommitted\n"})

    def act() -> None:
        git(project, "commit", "--quiet", "--amend", "--message", "Otherwise")
        git(project, "reflog", "expire", "--expire=now", "--all")
        git(project, "gc", "--quiet", "--prune=now")

    meanwhile.before("a/1/worker", 1, act)
    meanwhile.before("b/1/qc", 1, act)
    parts = [
        worker("a", shell("git show --stat HEAD && cat dirty.txt calc.py"), *wrote("a")["turns"]),  # type: ignore[misc]
        wrote("b"),
    ]

    journey = await travel(project, plan(step("a"), step("b", "a")), parts, apply="auto")

    assert meanwhile.done == 2
    assert journey.ending.exit_code == 0
    assert "exit code 0" in str(journey.facts.tool_calls("a")[0]["valueJson"])
    assert journey.ending.applied == ("a.txt", "b.txt")
    assert invariants.broken(journey.facts) == []


# Names.

NAMES = [
    b"with space.txt",
    b"with\nnewline.txt",
    b'with\ttab and "quotes".txt',
    b"-leading-dash.txt",
    b"latin-\xe9\xff.txt",
    "snow ☃ man.txt".encode(),
    b":(exclude)magic.txt",
    b"*star?.txt",
    b"deep \xff dir/in side.txt",
    b"\x1b[31mred.txt",
]


def write_names(project: Path) -> None:
    for number, name in enumerate(NAMES):
        path = os.fsencode(project) + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120  bytes
        with open(path, "wb") as file:  # noqa: PTH123  bytes
            file.write(b"%d\n" % number)


@pytest.mark.parametrize("tracked", [True, False], ids=["tracked", "untracked"])
async def test_names_of_any_bytes_survive(tracked: bool, tmp_path: Path):
    project = start(tmp_path)
    write_names(project)
    if tracked:
        git(project, "add", "--all")
        git(project, "commit", "--quiet", "--message", "Names")
    before = listing(project)
    edit_all = 'for f in *.txt; do printf more >> "./$f"; done; ls | wc -l'
    parts = [
        worker(
            "a",
            {"calls": [calls("list_files", glob="**"), calls("grep", pattern=".")]},
            {"calls": [calls("read_file", path="with space.txt")]},
            shell(edit_all),
            writes("a.txt", "a\n"),
            shell("rm ./latin* && mv './with space.txt' \"$(printf 'moved\\377')\""),
            "Every name was used.",
        )
    ]

    journey = await travel(project, plan(step("a", estimated_tool_calls=10)), parts, apply="auto")

    assert journey.ending.exit_code == 0, journey.report
    there = set(os.listdir(os.fsencode(project)))  # noqa: PTH208  bytes
    assert b"latin-\xe9\xff.txt" not in there
    assert b"moved\xff" in there
    assert (project / "with\nnewline.txt").read_text() == "1\nmore"
    assert (project / "snow ☃ man.txt").read_text() == "5\nmore"
    assert "\x1b" not in journey.report
    del before
    assert invariants.broken(journey.facts) == []


@pytest.mark.parametrize(
    "name",
    [b"two words", b"line\nend", b"caf\xe9", "ünï ☃".encode(), b'it\'s "$HOME" `x`', b"a:b,c"],
    ids=["space", "newline", "latin", "unicode", "quotes", "colon"],
)
async def test_a_project_directory_of_any_name_is_worked_on(name: bytes, tmp_path: Path):
    project = tmp_path / os.fsdecode(name)
    make_project(project, CALCULATOR)
    tests = check("python", "-m", "pytest", "-q", kind="hold", id="suite")
    task = step("a", checks=(holds("a.txt", "^a$"), tests))

    journey = await travel(project, plan(task), WROTE, apply="auto")

    assert journey.ending.exit_code == 0, journey.report
    assert (project / "a.txt").read_text() == "a\n"
    assert invariants.broken(journey.facts) == []
