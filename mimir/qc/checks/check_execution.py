"""Execution of one check on a clean checkout in the sandbox.

A command sees exactly one tree and, as a read-only file at `$MIMIR_ANSWER`, the worker's closing answer (empty before the work).
If it uses git, the tree is a repository with one commit: `git diff` shows the changes of the command alone.
"""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.domain.test_results import TestResults
from mimir.domain.text_hash import hash_text
from mimir.errors import Paused, SandboxError, ToolError, WorkspaceError
from mimir.qc.checks.check_products import (
    describe_renewed,
    find_products,
    list_paths,
    read_snapshots,
)
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.controls.control_runner import run_control
from mimir.qc.controls.variants import Alter
from mimir.qc.results import request
from mimir.qc.results.report_files import read_results, remove_own_reports
from mimir.tools.calls.text_pages import clip_both_ends
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox import toolchain
from mimir.workspace.sandbox.sandbox import CommandResult, CommandRunner
from mimir.workspace.tree_removal import remove_tree

Phase = Literal["before", "after", "control", "merged", "gate"]

MAX_TAIL = 16_000
"""Characters kept of an output: its head, and more of its end, with the summary."""
ANSWER_VARIABLE = "MIMIR_ANSWER"
ANSWER_PATH = "/mimir/answer.md"
"""Path of the closing answer inside the sandbox."""
_GIT = re.compile(r"\bgit\b")
_NO_REPOSITORY = re.compile(r"git ?repository", re.IGNORECASE)
"""In messages of git, and of tools and libraries that call it, outside of a repository."""
_CHECKOUT = "workspace"
_REPORTS = "results"
_REPORTERS = Path(__file__).parent.parent / "results" / "reporters"


class CheckExecution:
    """Executor of checks with bounded concurrency."""

    def __init__(
        self,
        *,
        history: GitHistory,
        sandbox: CommandRunner,
        room: Path,
        redact: Callable[[str], str] = str,
        at_once: int = 2,
    ) -> None:
        """Bind the executor; `redact` sees whole outputs, `at_once` bounds the runs of all tasks."""
        self._history = history
        self._sandbox = sandbox
        self._work_dir = room
        self._redact = redact
        self._slots = asyncio.Semaphore(at_once)
        self._git_commands = set[tuple[str, ...]]()
        """Commands whose output named a missing repository."""
        self._naming_lock = asyncio.Lock()
        self._naming = dict[str, bool]()
        """Tree → whether a file of it names the variable of the answer."""

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run a check on a tree; raise `Paused` if the sandbox or the disk failed."""
        run = await self._run(check, tree, phase, answer, again=again)
        if run is None:
            raise AssertionError("only an altered checkout may have nothing to run")
        return run

    async def may_read_answer(self, check: Check, tree: str) -> bool:
        """Return whether a command, or a file of its tree, names the variable of the answer."""
        if any(ANSWER_VARIABLE in word for word in check.argv):
            return True
        # One search for each tree: checks that wait for it start in their order, so records keep theirs.
        async with self._naming_lock:
            if tree not in self._naming:
                self._naming[tree] = await self._history.may_hold_text(tree, ANSWER_VARIABLE)
        return self._naming[tree]

    async def control(self, case: ControlCase) -> CheckRun:
        """Run the control of a passed check; raise `Paused` as `run` does."""

        async def execute(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
            check = replace(case.check, timeout_seconds=seconds)
            return await self._run(check, tree, "control", case.answer, alter=alter)

        results, new = case.before.results, case.new_tests
        if new.paths and results and (results.errored or results.problem):
            # They cannot be loaded without the work, which hides the results of older tests.
            base = await self._history.with_files(case.base_tree, new.base, new.paths)
            case = replace(case, base_tree=base)
        elif case.kind == "hold" and case.before.green:
            # Without tests of earlier tasks that cannot be compiled before the work.
            case = replace(case, base_tree=case.before.tree)
        return await run_control(case, execute)

    async def _run(
        self,
        check: Check,
        tree: str,
        phase: Phase,
        answer: str,
        *,
        again: bool = False,
        alter: Alter | None = None,
    ) -> CheckRun | None:
        """Run a check on a tree; `alter` may change the checkout. None: it has nothing to run."""
        run = CheckRun(
            check=check.id, argv=check.argv, phase=phase, tree=tree, exit_code=None, again=again
        )
        async with self._slots:
            try:
                return await self._run_isolated(check, run, answer, alter)
            except ToolError as error:
                # Words that no program can receive count as a missing program: a finding on the plan.
                why = str(error)
                return replace(run, missing=True, output_hash=hash_text(why), output_tail=why)
            except SandboxError as error:
                raise Paused(
                    f"The sandbox failed, so check {check.id!r} cannot run: {error}",
                    reason="sandbox",
                    next_step=error.next_step
                    or "Find the cause with `mimir doctor`, then: mimir resume",
                ) from error
            except (OSError, WorkspaceError) as error:
                raise Paused(
                    f"The checkout for check {check.id!r} cannot be written: {error}",
                    reason="disk",
                    next_step="Free disk space, then: mimir resume",
                ) from error

    async def _run_isolated(
        self, check: Check, run: CheckRun, answer: str, alter: Alter | None
    ) -> CheckRun | None:
        """Return the run completed in a new directory."""
        is_repository = check.argv in self._git_commands or any(map(_GIT.search, check.argv))
        async with self._make_directory() as directory:
            checkout = directory / _CHECKOUT
            answer_file = directory / "answer.md"
            answer_file.write_text(answer, encoding="utf-8", errors="backslashreplace")
            # The answer is evidence: a check must not be able to rewrite it.
            answer_file.chmod(0o444)
            await self._history.checkout(run.tree, checkout)
            argv = await asyncio.to_thread(alter, checkout) if alter else check.argv
            if argv is None:
                return None
            wanted = request.request_report(argv, str(toolchain.interpreter()))
            programs = await asyncio.to_thread(_prepare_report, directory)
            known = await asyncio.to_thread(list_paths, checkout)
            stored = await asyncio.to_thread(read_snapshots, checkout, known)
            if is_repository:
                await self._history.make_repository(checkout)
            result = await self._sandbox.run(
                wanted.argv,
                workspace=checkout,
                seconds=check.timeout_seconds,
                extra_ro={
                    ANSWER_PATH: answer_file,
                    request.REPORTERS: _REPORTERS,
                    request.PROGRAMS: programs,
                },
                extra_rw={request.FOLDER: directory / _REPORTS},
                first=wanted.first,
                env={
                    ANSWER_VARIABLE: ANSWER_PATH,
                    **wanted.environment,
                    # A cached module of the same size and second would hide an altered file. Every
                    # run has it: a difference would show the work that this is a control.
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
            )
            if is_repository or not _NO_REPOSITORY.search(result.output):
                own = checkout if request.reads_folder(wanted.expected) else None
                tests = await asyncio.to_thread(
                    read_results, directory / _REPORTS, wanted, own, self._redact
                )
                if tests is not None and alter is None:
                    renewed = await asyncio.to_thread(describe_renewed, stored, checkout)
                    tests = replace(tests, problem=renewed or tests.problem)
                if run.phase == "before":
                    products = await asyncio.to_thread(find_products, known, checkout)
                    run = replace(run, products=products)
                return self._complete(run, result, tests, directory)
        # Most checks use no git, so a repository is made on demand.
        self._git_commands.add(check.argv)
        return await self._run_isolated(check, run, answer, alter)

    @contextlib.asynccontextmanager
    async def _make_directory(self) -> AsyncGenerator[Path]:
        """Make a directory for one run."""
        self._work_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory = Path(tempfile.mkdtemp(dir=self._work_dir, prefix="check-"))
        try:
            yield directory
        finally:
            # Shielded, so that a cancelled run leaves no checkout; files that resist removal stay.
            with contextlib.suppress(WorkspaceError):
                await to_thread_shielded(remove_tree, directory)

    def _complete(
        self, run: CheckRun, result: CommandResult, tests: TestResults | None, directory: Path
    ) -> CheckRun:
        """Return a run with the result of its command in a directory."""
        # Directory names are random, so two runs of one check would differ by them.
        output = result.output.replace(str(directory / _CHECKOUT), request.WORKSPACE)
        # Everyone who reads the result sees the advice: QC, the next attempt, report and screen.
        notes = [result.advice, tests.contradiction if tests and result.exit_code == 0 else ""]
        output = "\n".join((output, *(f"[{note}]" for note in notes if note)))
        output = self._redact(output.replace(str(directory), "/mimir"))
        return replace(
            run,
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            missing=result.is_program_missing,
            # Milliseconds are precise enough, and keep the sealed payload short.
            seconds=round(result.seconds, 3),
            output_hash=result.output_hash,
            output_tail=clip_both_ends(output, MAX_TAIL),
            sandbox=result.backend,
            results=None if result.is_program_missing else tests,
        )


def _prepare_report(directory: Path) -> Path:
    """Make the folder of the reports; return that of the programs started in their place."""
    (directory / _REPORTS).mkdir()
    remove_own_reports(directory / _CHECKOUT)
    programs = directory / "programs"
    programs.mkdir(mode=0o755)
    for name in request.STARTED:
        (programs / name).write_text(request.STARTER)
        (programs / name).chmod(0o755)
    return programs
