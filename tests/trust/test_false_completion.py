"""Wrong work that tries to pass its check, by each known cause, and honest work of the same shape.

The engine decides the deliverable, runs the checks and controls them in the real sandbox; QC would pass everything.
"""

import os
import pwd
from pathlib import Path

import pytest

from mimir.bootstrap.toolsets import ProjectSandbox
from mimir.domain.plan import Check, Task
from mimir.qc.checks.check_execution import CheckExecution
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.controls.control_case import ControlCase
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox.sandbox import Sandbox, SandboxConfig
from mimir.workspace.sandbox.sharing.caches import UserMachine
from mimir_bench.faults.attacks.projects import PROJECTS
from mimir_bench.faults.attacks.runner_project import AttackVersion, RunnerProject, all_versions
from mimir_bench.faults.attacks.single_causes import SINGLE_CAUSES
from tests.support.clock import FrozenClock
from tests.support.compiled_projects import user_runs
from tests.support.projects import make_project, write_files
from tests.support.scoped_deliverables import restrict
from tests.support.trust_sizes import Cases, sample, size

# A build of Go takes seconds, and CMake is seldom installed: only `make trust` has these cases.
# Unit tests hold the single causes.
ONLY_TRUST = {"go", "ctest", *SINGLE_CAUSES}
RUNNERS = [name for name in PROJECTS if name not in ONLY_TRUST or size() != "small"]
LIMITS = frozenset[str]()
"""Attacks that docs/security.md names as limits."""


class _Bench:
    """Engine pieces over one project."""

    def __init__(self, project: RunnerProject, top: Path, clock: FrozenClock) -> None:
        self._project = project
        self._top = top
        self._clock = clock

    async def open(self) -> None:
        """Create the project and its history."""
        project = make_project(self._top / "project", files=dict(self._project.base))
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        user = UserMachine(home=home, path=tuple(map(Path, os.get_exec_path())))
        if self._project.run[0] == "go":
            # A user's cache has the standard library, whose build takes minutes.
            cache = {"GOCACHE": str(home / ".cache/go-build")}
            user_runs(project, *self._project.run, expect=(0, 1), variables=cache)
        config = SandboxConfig(user=user)
        sandbox = Sandbox(config, scratch=self._top / "scratch", clock=self._clock)
        self.history = await GitHistory.open(
            project, self._top / "history.git", owner=sandbox.owner, home=self._top
        )
        self.base = await self.history.tree((await self.history.base("run-1")).commit)
        confined = ProjectSandbox(sandbox, self.history, project)
        execution = CheckExecution(
            history=self.history, sandbox=confined, room=self._top / "checks"
        )
        self.checks = CheckRunner(self.history, execution)

    async def is_completed(self, case: AttackVersion, files: tuple[str, ...]) -> bool:
        """Return whether the engine would accept a deliverable."""
        check = Check(
            id="unit",
            criteria=("c1",),
            run=case.run,
            kind=case.kind,
            tests=self._project.tests,
            protect=self._project.protect,
            timeout_seconds=120,
        )
        task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(check,), files=files)
        where, index = self._top / "deliverable", self._top / "index"
        await self.history.fill(self.base, where, index)
        write_files(where, case.changes)
        taken = await self.history.snapshot(where, index, base=self.base)
        tree, _ = await self.history.restrict(taken.tree, self.base, files=files)
        work = await restrict(self.history, task, self.base, tree)
        (outcome,) = await self.checks.outcomes(
            CheckTarget(
                task=task,
                first_base=self.base,
                own_base=self.base,
                tree=work.tree,
                changed=work.changed,
                answer="Done.",
            )
        )
        if outcome.state != "passed":
            return False
        run = await self.checks.control(
            ControlCase(
                check=check,
                kind=outcome.kind,
                before=outcome.before,
                after=outcome.after,
                base_tree=self.base,
                changed=work.changed,
            )
        )
        return run.control is not None and run.control.state == "red"


@pytest.mark.parametrize("runner", RUNNERS)
async def test_wrong_work_is_never_completed_and_right_work_is(
    runner: str, tmp_path: Path, frozen_clock: FrozenClock, cases: Cases
):
    bench = _Bench(PROJECTS[runner], tmp_path, frozen_clock)
    await bench.open()
    for one, files in sample(list(all_versions(PROJECTS[runner])), 4):
        name = f"{runner}: {one.name}{', with files' if files else ''}"
        with cases.case(name):
            assert await bench.is_completed(one, files) is one.is_right or name in LIMITS
