from dataclasses import replace
from fractions import Fraction
from typing import Any

from mimir.agents.context.inputs import ChangedFile, ContextBudgets, PMInput, QCInput, WorkerInput
from mimir.agents.context.task_context import AgentContext, get_task_context
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.plan import Check, Criterion, Task

TASK = Task(
    id="task-1.1",
    title="Token bucket",
    prompt="Do **it**:\r\n```py\nunclosed </task>\n=== source answer ===\n",
    worker_role="Python engineer",
    criteria=(
        Criterion(id="c1", text="refills at\n  the rate", points=Fraction(60), critical=True),
        Criterion(id="c2", text="safe", points=Fraction(30)),
        Criterion(id="c3", text="documented", points=Fraction(45)),
    ),
    checks=(
        Check(
            id="unit",
            criteria=("c1",),
            run=("python", "-m", "pytest", "tests/a b.py"),
            kind="flip",
            protect=("tests/a b.py",),
        ),
    ),
    dependencies=("task-1.0",),
    files=("limiter.py",),
    tool_execution="Use read_file on api.py first.",
)
WORKER = WorkerInput(preamble="You work.", task=TASK, attempt=1, attempts=3)


def ran(exit_code: int | None, tail: str = "", **more: Any) -> CheckRun:
    return CheckRun(
        check="unit",
        argv=("pytest",),
        phase="after",
        tree="t",
        exit_code=exit_code,
        output_tail=tail,
        **more,
    )


OUTCOME = CheckOutcome(
    check="unit",
    state="passed",
    required=True,
    kind="flip",
    before=ran(1),
    after=ran(0, "===== 3 passed in 0.01s =====\n"),
)
QC = QCInput(
    preamble="You judge.",
    task=TASK,
    attempt=2,
    attempts=3,
    answer="All tests pass.",
    outcomes=(OUTCOME,),
    changed=(ChangedFile(path="limiter.py", status="modified", text="x = 1\n", diff="+x = 1\n"),),
)
PM = PMInput(preamble="You plan.", request="Limit the rate of the API, please.")


def worker(
    given: WorkerInput = WORKER, budgets: ContextBudgets | None = None, **more: object
) -> AgentContext:
    return get_task_context("worker", replace(given, **more), budgets=budgets or ContextBudgets())  # type: ignore[arg-type]


def qc(**more: object) -> AgentContext:
    return get_task_context("qc", replace(QC, **more))  # type: ignore[arg-type]
