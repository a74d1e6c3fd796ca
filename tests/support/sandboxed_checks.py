"""A bench for checks with real git trees, the real sandbox and real test runners."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mimir.bootstrap.toolsets import ProjectSandbox
from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Check, CheckKind, Task
from mimir.qc.checks.check_execution import CheckExecution
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.check_target import CheckTarget
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox.sandbox import Sandbox, SandboxConfig
from tests.support.clock import FrozenClock
from tests.support.projects import make_project, write_files
from tests.support.scoped_deliverables import restrict

PYTEST = ("python", "-m", "pytest", "-q")


@dataclass
class Bench:
    project: Path
    history: GitHistory
    checks: CheckRunner
    room: Path
    base: str

    async def outcome(
        self,
        check: Check,
        changes: Mapping[str, str | None],
        answer: str = "Done.",
        files: tuple[str, ...] = (),
    ) -> CheckOutcome:
        where = self.room / "deliverable"
        index = self.room / "index"
        await self.history.fill(self.base, where, index)
        write_files(where, {path: text for path, text in changes.items() if text is not None})
        for path, text in changes.items():
            if text is None:
                (where / path).unlink()
        taken = await self.history.snapshot(where, index, base=self.base)
        task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(check,), files=files)
        work = await restrict(self.history, task, self.base, taken.tree)
        outcomes = await self.checks.outcomes(
            CheckTarget(
                task=task,
                first_base=self.base,
                own_base=self.base,
                tree=work.tree,
                changed=work.changed,
                answer=answer,
            )
        )
        return replace(outcomes[0], findings=(*outcomes[0].findings, *work.notes))


async def opened(tmp_path: Path, clock: FrozenClock) -> Bench:
    """Return a bench over a small project with one test."""
    project = make_project(tmp_path / "project")
    sandbox = Sandbox(SandboxConfig(), scratch=tmp_path / "scratch", clock=clock)
    history = await GitHistory.open(
        project, tmp_path / "history.git", owner=sandbox.owner, home=tmp_path
    )
    base = await history.tree((await history.base("run-1")).commit)
    room = tmp_path / "room"
    room.mkdir()
    confined = ProjectSandbox(sandbox, history, project)
    execution = CheckExecution(history=history, sandbox=confined, room=room / "checks")
    return Bench(project, history, CheckRunner(history, execution), room, base)


def check(kind: CheckKind | None, run: tuple[str, ...] | str, **more: Any) -> Check:
    return Check(id="unit", criteria=("c1",), run=run, kind=kind, timeout_seconds=30, **more)
