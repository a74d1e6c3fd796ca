"""A failure under the engine pauses the run: no task fails, no command runs unconfined, and `resume` finishes the run."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from mimir.domain.run import Apply, RunBudget, RunResult
from mimir.errors import MimirError, UnavailableError
from mimir.orchestrator.api import Mimir
from mimir.qc.checks.check_execution import CheckExecution
from mimir.scheduling.processes.task_worker import TaskWorker
from mimir.workspace.git import git_command
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox import sandbox as confinement
from mimir.workspace.sandbox.sandbox import Sandbox
from mimir.workspace.user_tree import user_file
from tests.support import invariants
from tests.support.midrun_actions import Meanwhile
from tests.support.projects import write_files
from tests.support.whole_run import (
    PLAN_PATH,
    Part,
    calls,
    look,
    opened,
    plan,
    start,
    step,
    worker,
    writes,
    wrote,
)

PLAN = plan(step("a"), step("b", "a"))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Actions during the run."""
    return Meanwhile(monkeypatch)


async def begin(mimir: Mimir, apply: Apply = "never") -> RunResult:
    run = await mimir.create_run(PLAN, PLAN_PATH, only=(), limits=RunBudget())
    return await mimir.drive(run, workers=2, apply=apply, limits=RunBudget(), resumed=False)


async def resume_run(mimir: Mimir, apply: Apply = "never") -> RunResult:
    run = await mimir.find_run(None, resumable=True)
    return await mimir.drive(run, workers=2, apply=apply, limits=RunBudget(), resumed=True)


async def assert_finishes(project: Path, parts: list[Part]) -> None:
    """Resume the run in a new process's stead; it ends as if nothing had happened."""
    async with opened(project, parts) as mimir:
        ending = await resume_run(mimir)
        journey = await look(mimir, project, ending)
    assert ending.exit_code == 0, ending.message
    assert journey.statuses == {"a": "completed", "b": "completed"}
    assert journey.facts.files.keys() == {"README.md", "a.txt", "b.txt"}
    assert [len(journey.facts.attempts(task)) for task in "ab"] == [1, 1]
    assert invariants.broken(journey.facts) == []


# A workspace that is removed.

MORE = {"calls": [calls("write_file", path="more.txt", content="more\n")]}
BACK = {"calls": [calls("delete_file", path="more.txt")]}
NEXT_CALLS: dict[str, dict[str, object]] = {
    "read": {"calls": [calls("read_file", path="a.txt")]},
    "list": {"calls": [calls("list_files", glob="**"), calls("grep", pattern="x")]},
    "write": {"calls": [calls("write_file", path="a.txt", content="a\n")]},
    "edit": {"calls": [calls("edit_file", path="a.txt", old="a", new="a")]},
    "run": {"calls": [calls("run", command="cat a.txt")]},
}


@pytest.mark.parametrize(
    ("call", "with_index"),
    [("read", False), ("list", False), ("write", True), ("edit", False), ("run", True)],
)
async def test_a_workspace_removed_under_the_engine_pauses_and_is_made_again(
    call: str, with_index: bool, tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path)
    parts = [worker("a", writes("a.txt", "a\n"), NEXT_CALLS[call], "Done."), wrote("b")]

    def remove() -> None:
        [place] = (project / ".mimir/work").glob("run-*/a/1.*[0-9]")
        shutil.rmtree(place.parent if with_index else place)

    meanwhile.before("a/1/worker", 2, remove)
    async with opened(project, parts) as mimir:
        ending = await begin(mimir)
        assert meanwhile.done == 1
        assert (ending.outcome, ending.exit_code) == ("paused", 75)
        assert "missing" in ending.message or "cannot be opened" in ending.message
        assert "resume" in ending.next_step.lower()
        status = await mimir.status(ending.run)
    assert {t["id"]: t["status"] for t in status["tasks"]} == {  # type: ignore[attr-defined]
        "a": "worker_executing",
        "b": "pending",
    }
    await assert_finishes(project, parts)


async def test_a_workspace_removed_after_the_last_call_costs_nothing(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path)
    parts = [wrote("a"), wrote("b")]
    meanwhile.before("a/1/worker", 2, lambda: remove_workspaces(project))
    async with opened(project, parts) as mimir:
        ending = await begin(mimir)
    assert meanwhile.done == 1
    assert ending.exit_code == 0


def remove_workspaces(project: Path) -> None:
    [run] = (project / ".mimir/work").glob("run-*")
    shutil.rmtree(run)


async def test_pause_releases_a_claim_that_was_cancelled_after_its_write(
    tmp_path: Path, meanwhile: Meanwhile
):
    """A claim may be cancelled after it was written; were its lease left, a resume would wait for minutes."""
    project = start(tmp_path)
    parts = [worker("a", writes("a.txt", "a\n"), NEXT_CALLS["read"], "Done."), wrote("b")]
    meanwhile.before("a/1/worker", 2, lambda: remove_workspaces(project))

    async def forget(worker: TaskWorker) -> None:
        del worker

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskWorker, "_release", forget)
        async with opened(project, parts) as mimir:
            ending = await begin(mimir)
    assert ending.exit_code == 75
    await assert_finishes(project, parts)


async def test_a_history_removed_under_the_engine_is_no_failed_task(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path)
    parts = [worker("a", writes("a.txt", "a\n"), MORE, BACK, "Done."), wrote("b")]
    history = project / ".mimir/work/history.git"
    aside = history.with_name("aside")
    meanwhile.before("a/1/worker", 2, lambda: history.rename(aside))
    async with opened(project, parts) as mimir:
        ending = await begin(mimir)
    assert (ending.outcome, ending.exit_code) == ("paused", 75)
    shutil.rmtree(history, ignore_errors=True)
    aside.rename(history)
    await assert_finishes(project, parts)


# A disk that is full.


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def once(patch: pytest.MonkeyPatch, owner: object, name: str, *, at: int = 1) -> list[int]:
    """Let the `at`-th call of an async function find the disk full, and every later one until `patch` is undone."""
    original = getattr(owner, name)
    seen: list[int] = []

    async def broken(*given: object, **named: object) -> object:
        seen.append(1)
        if len(seen) >= at:
            raise full()
        return await original(*given, **named)

    patch.setattr(owner, name, broken)
    return seen


@pytest.mark.parametrize(
    ("owner", "name", "at"),
    [
        (GitHistory, "fill", 1),
        (GitHistory, "snapshot", 1),
        (GitHistory, "snapshot", 2),
        (GitHistory, "restrict", 1),
        (GitHistory, "commit", 1),
        (GitHistory, "checkout", 1),
        (GitHistory, "checkout", 3),
        (CheckExecution, "_run_isolated", 2),
        (Sandbox, "run", 1),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_full_disk_pauses_the_run_at_any_write(
    owner: type, name: str, at: int, tmp_path: Path
):
    project = start(tmp_path)
    run_it = {"calls": [calls("run", command="cat a.txt")]}
    parts = [worker("a", writes("a.txt", "a\n"), run_it, "Done."), wrote("b")]
    with pytest.MonkeyPatch.context() as patch:
        seen = once(patch, owner, name, at=at)
        async with opened(project, parts) as mimir:
            ending = await begin(mimir)
    assert seen
    assert (ending.outcome, ending.exit_code) == ("paused", 75), ending.message
    assert "space" in f"{ending.message} {ending.next_step}".lower()
    await assert_finishes(project, parts)


async def test_full_disk_in_git_pauses_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = start(tmp_path)
    parts = [wrote("a"), wrote("b")]
    refused = git_command.GitResult(
        code=128, out=b"", err="fatal: write error: No space left on device"
    )
    error = git_command.failure(["update-index"], refused)
    with monkeypatch.context() as patch:

        async def broken(*_: object, **__: object) -> object:
            raise error

        patch.setattr(GitHistory, "snapshot", broken)
        async with opened(project, parts) as mimir:
            ending = await begin(mimir)
    assert (ending.outcome, ending.exit_code) == ("paused", 75)
    await assert_finishes(project, parts)


# A sandbox that is missing, or breaks.


@pytest.mark.parametrize("case", ["no program", "a program that fails"])
async def test_without_a_sandbox_no_run_begins(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = start(tmp_path)
    programs = [] if case == "no program" else [Path("/bin/false")]
    monkeypatch.setattr(confinement, "_programs", lambda: programs)
    async with opened(project, [wrote("a")]) as mimir:
        with pytest.raises(UnavailableError) as caught:
            await mimir.create_run(PLAN, PLAN_PATH, only=(), limits=RunBudget())
    assert caught.value.exit_code == 69
    assert "sandbox" in str(caught.value).lower()
    assert caught.value.next_step


@pytest.mark.parametrize("during", ["work", "checks"])
async def test_a_sandbox_that_breaks_in_mid_run_pauses_and_runs_nothing_unconfined(
    during: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile
):
    project = start(tmp_path)
    witness = tmp_path / "witness"
    run_it = {"calls": [calls("run", command=f"touch '{witness}'; cat a.txt")]}
    parts = [worker("a", writes("a.txt", "a\n"), run_it, "Done."), wrote("b")]
    engine: list[Sandbox] = []
    made = Sandbox.__init__

    def keep(self: Sandbox, *given: object, **named: object) -> None:
        made(self, *given, **named)  # type: ignore[arg-type]
        engine.append(self)

    monkeypatch.setattr(Sandbox, "__init__", keep)
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    broken.chmod(0o755)

    def act() -> None:
        assert engine[-1]._way is not None
        engine[-1]._way = (broken, engine[-1]._way[1])

    meanwhile.before("a/1/worker", 2 if during == "work" else 3, act)
    async with opened(project, parts) as mimir:
        ending = await begin(mimir)
    assert meanwhile.done == 1
    assert (ending.outcome, ending.exit_code) == ("paused", 75)
    assert "sandbox" in ending.message.lower()
    assert "resume" in ending.next_step
    assert not witness.exists()
    await assert_finishes(project, parts)
    assert not witness.exists()


async def test_resume_without_the_sandbox_fails_before_any_execution(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = start(tmp_path)
    parts = [worker("a", writes("a.txt", "a\n"), NEXT_CALLS["read"], "Done."), wrote("b")]
    meanwhile.before("a/1/worker", 2, lambda: remove_workspaces(project))
    async with opened(project, parts) as mimir:
        await begin(mimir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confinement, "_programs", list)
        async with opened(project, parts) as mimir:
            with pytest.raises(MimirError) as caught:
                await resume_run(mimir)
    assert caught.value.exit_code == 69
    await assert_finishes(project, parts)


# Apply.


async def test_a_disk_full_during_apply_leaves_the_directory_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = start(tmp_path)
    parts = [wrote("a"), wrote("b")]
    before = invariants.listing(project)
    make = user_file.make_change
    made: list[object] = []

    def broken(move: user_file.FileChange, *given: object) -> object:
        made.append(move)
        if len(made) == 2:
            raise full()
        return make(move, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(user_file, "make_change", broken)
        async with opened(project, parts) as mimir:
            ending = await begin(mimir, apply="auto")
    assert (ending.outcome, ending.exit_code) == ("paused", 75)
    now = invariants.listing(project)
    assert {k: v for k, v in now.items() if k in before or k.endswith(".txt")} == before
    async with opened(project, parts) as mimir:
        ending = await resume_run(mimir, apply="auto")
    assert ending.applied == ("a.txt", "b.txt")
    assert (project / "b.txt").read_text() == "b\n"


# Shared folders.


def with_modules(tmp_path: Path) -> Path:
    """A project with an ignored folder of dependencies."""
    project = start(tmp_path)
    write_files(
        project, {"node_modules/dep/index.js": "1\n", ".git/info/exclude": "node_modules\n"}
    )
    return project


async def test_a_shared_folder_that_vanishes_in_mid_run_pauses_until_it_is_back(
    tmp_path: Path, meanwhile: Meanwhile
):
    project = with_modules(tmp_path)
    parts = [wrote("a"), wrote("b")]
    aside = tmp_path / "aside"
    meanwhile.before("b/1/worker", 2, lambda: shutil.move(project / "node_modules", aside))
    async with opened(project, parts) as mimir:
        ending = await begin(mimir)
        status = await mimir.status(ending.run)
    assert (meanwhile.done, ending.outcome, ending.exit_code) == (1, "paused", 75)
    assert "'node_modules' vanished" in ending.message
    assert "mimir resume" in ending.next_step
    assert status["tasks"][0]["status"] == "completed"  # type: ignore[index]
    shutil.move(aside, project / "node_modules")
    await assert_finishes(project, parts)


async def test_a_run_completes_where_the_kernel_refuses_overlays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = with_modules(tmp_path)
    (known, *_) = confinement._programs()
    refusing = tmp_path / "bwrap"
    # The options come through a descriptor.
    refusing.write_text(
        f'#!/bin/bash\nmapfile -d "" words < /dev/fd/$2\n'
        f'case " ${{words[*]}} " in *--tmp-overlay*) echo "overlay: refused" >&2; exit 1;; esac\n'
        f'shift 2; exec {known} "${{words[@]}}" "$@"\n'
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(confinement, "_programs", lambda: [refusing])
    reads = {"calls": [calls("run", command="cat node_modules/dep/index.js; > node_modules/x")]}
    parts = [worker("a", reads, writes("a.txt", "a\n"), "Done."), wrote("b")]
    async with opened(project, parts) as mimir:
        ending = await begin(mimir)
        journey = await look(mimir, project, ending)
    assert ending.exit_code == 0, ending.message
    (said, _) = journey.facts.tool_calls("a")
    assert "Read-only file system" in str(said)
    assert not (project / "node_modules/x").exists()
