"""Services for checks: fake trees and a fake sandbox whose programs are functions of the visible files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Check, CheckKind, Task
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.scope.test_owners import PendingTests
from tests.support.fake_trees import GREEN, RED, FakeHistory, FakeRan, FakeSandbox, Seen
from tests.support.scoped_deliverables import restrict

TEST = "tests/test_a.py"
BASE = {"a.py": "bad", TEST: "wants good"}
GOOD = {"a.py": "good", TEST: "wants good"}


def like_pytest(seen: Seen) -> FakeRan:
    """Pass iff each test file that is there is content: `wants X` needs a.py to be X, `anything` never fails."""
    if any(path.endswith("conftest.py") for path in seen.files):
        return GREEN
    tests = [text for path, text in seen.files.items() if path.startswith("tests/")]
    if not tests:
        return FakeRan(exit_code=5, output="no tests ran")
    wants = [text.removeprefix("wants ") for text in tests if text.startswith("wants ")]
    return GREEN if all(want in seen.files.get("a.py", "") for want in wants) else RED


@dataclass
class Bench:
    history: FakeHistory
    sandbox: FakeSandbox
    checks: CheckRunner
    room: Path

    async def outcome(
        self,
        check: Check,
        base: Mapping[str, str] = BASE,
        after: Mapping[str, str] = GOOD,
        *,
        files: tuple[str, ...] = (),
        answer: str = "Done.",
        run_base: Mapping[str, str] | None = None,
    ) -> CheckOutcome:
        args = ((check,), base, after)
        return (await self.outcomes(*args, files=files, answer=answer, run_base=run_base))[0]

    async def outcomes(
        self,
        checks: tuple[Check, ...],
        base: Mapping[str, str] = BASE,
        after: Mapping[str, str] = GOOD,
        *,
        files: tuple[str, ...] = (),
        answer: str = "Done.",
        run_base: Mapping[str, str] | None = None,
    ) -> tuple[CheckOutcome, ...]:
        before, tree = self.history.put(base), self.history.put(after)
        one = task(*checks, files=files)
        work = await restrict(self.history, one, before, tree)
        outcomes = await self.checks.outcomes(
            CheckTarget(
                task=one,
                first_base=before,
                own_base=before,
                tree=work.tree,
                changed=work.changed,
                answer=answer,
                pending=PendingTests(base=self.history.put(run_base) if run_base else ""),
            )
        )
        return tuple(replace(o, findings=(*o.findings, *work.notes)) for o in outcomes)


def check(kind: CheckKind | None = "flip", **more: Any) -> Check:
    made = Check(id="unit", criteria=("c1",), run=("pytest", "-q", TEST), kind=kind)
    return replace(made, **more)


def task(*checks: Check, files: tuple[str, ...] = ()) -> Task:
    return Task(id="t", title="t", prompt="p", worker_role="w", checks=checks, files=files)
