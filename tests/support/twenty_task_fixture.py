"""The fixture "fleet of twenty": a ledger service in 20 tasks, and the contexts of all agents of its run.

`python -m tests.support.twenty_task_fixture` prints the figures of its receipts. Nothing is random; sizes are those of a small real project: 48 files of
which the PM has read twelve, four worker roles, tasks with one or two context files and up to three dependencies, three retries.
"""

import time
from collections.abc import Sequence
from fractions import Fraction
from statistics import median

from mimir.agents.context.inputs import (
    ChangedFile,
    DependencyView,
    EarlierAttempt,
    FailedCheck,
    FileView,
    PMInput,
    QCInput,
    RelatedTask,
    WorkerInput,
)
from mimir.agents.context.receipt import (
    ContextReceipt,
    GivenPiece,
    fingerprint,
)
from mimir.agents.context.task_context import AgentContext, PlannerKnowledge, get_task_context
from mimir.agents.preambles import templates
from mimir.domain.evidence import CheckOutcome, CheckRun, CheckState
from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.domain.usage import estimate
from mimir.planning.format.labels import format_instructions
from mimir.qc.judgement.verdict_parser import instructions
from tests.support.receipt_figures import deduplication_ratio, reduction_ratio

PARTS = (
    "accounts", "entries", "balances", "currencies", "rates", "imports", "exports", "audit", "users", "rights",
    "reports", "search", "archive", "alerts", "limits", "fees", "taxes", "statements", "webhooks", "health",
)  # fmt: skip
ROLES = (
    "Python engineer who knows accounting", "Database engineer", "Test engineer", "Technical writer",
)  # fmt: skip
RETRIED = (3, 8, 14)


def lines(about: str, count: int) -> str:
    """Return source text that is about something: as many lines, no two alike."""
    return "".join(
        f"def {about}_{n}(ledger, key{n}, amount=None):\n    return ledger.{about}[key{n}].apply({n * 7}, amount)\n\n"
        for n in range(count)
    )


FILES = {
    **{f"ledger/{part}.py": lines(part, 24) for part in PARTS},
    **{f"tests/test_{part}.py": lines(f"test_{part}", 12) for part in PARTS},
    **{
        f"docs/{part}.md": f"# {part}\n" + f"How {part} work, and why.\n" * 20 for part in PARTS[:8]
    },
}
READ = [*list(FILES)[:8], *list(FILES)[20:24]]


def task(number: int) -> Task:
    """Return one of the twenty; each builds on up to three before it."""
    part = PARTS[number]
    needs = tuple(f"task-{n}" for n in (number - 5, number - 4, number - 1) if n >= 0)
    return Task(
        id=f"task-{number}",
        title=f"Make {part} idempotent",
        prompt=f"Applying the same {part} twice must change the ledger once. Keep the signatures of ledger/{part}.py. "
        f"Write down in its docstring what is compared. Callers that pass no key go on as before; test both. "
        * 3,
        worker_role=ROLES[number % 4],
        qc_role="Reviewer of Python for ledgers",
        criteria=(
            Criterion(
                id="c1", text=f"The same {part} applied twice count once", points=Fraction(60)
            ),
            Criterion(id="c2", text="Callers without a key are not changed", points=Fraction(40)),
        ),
        checks=(
            Check(
                id="unit",
                criteria=("c1", "c2"),
                run=("python", "-m", "pytest", "-q", f"tests/test_{part}.py"),
            ),
        ),
        dependencies=needs,
        files=(f"ledger/{part}.py", f"tests/test_{part}.py"),
        context_files=(f"ledger/{part}.py", "ledger/accounts.py"),
        tool_execution="Read the files first, then write the test, see it fail, make it pass.",
        estimated_tool_calls=8,
    )


PLAN = Plan(
    title="Idempotent ledger",
    goal="No entry counts twice.",
    request="Make every change of the ledger idempotent.",
    reasoning="Keys in the table were compared with keys in the caller; the table wins because imports retry. "
    * 40,
    tasks=tuple(map(task, range(20))),
)


def preamble(kind: templates.Name, role: str) -> str:
    """Return the preamble of a role's agents, from the shipped templates without a model."""
    return f"{templates.load_template(kind, None).text}\n\nYou are: {role}\n\n{templates.fixed_rules(kind)}"


def answer(number: int) -> str:
    """Return a worker's closing answer."""
    part = PARTS[number]
    return f'{part} compare key and amount now. [call:4] "2 passed in 0.0{number}s". ' * 6


def planner() -> ContextReceipt:
    """Return the context of the PM: its brief, and its further reading."""
    seen = get_task_context(
        "pm",
        PMInput(
            preamble=templates.system_message("pm", None),
            request=PLAN.request,
            repository=tuple(sorted((path, len(text)) for path, text in FILES.items())),
            form=format_instructions(),
        ),
    ).receipt
    research = sum(estimate(FILES[path]) for path in READ)
    read = GivenPiece(
        name="research", importance="important", tokens=research, hash=fingerprint("research")
    )
    return ContextReceipt(role="pm", lane="plan/pm", given=(*seen.given, read))


BACKGROUND = PlannerKnowledge.from_plan(PLAN, planner())


def view(path: str) -> FileView:
    """Return a file as a task is shown it."""
    return FileView(path=path, size=len(FILES[path]), text=FILES[path])


def outcome(number: int, state: CheckState = "passed") -> CheckOutcome:
    """Return how the task's check ended."""
    code = 0 if state == "passed" else 1
    run = CheckRun(
        check="unit", argv=("python", "-m", "pytest", "-q"), phase="after", tree="t", exit_code=code,
        output_tail=f"{'.' * 20}\n{number} passed\n" if code == 0 else "E   assert 2 == 1\n" * 12,
    )  # fmt: skip
    return CheckOutcome(
        check="unit", state=state, required=True, kind="flip", before=run, after=run
    )


def worker(number: int, attempt: int) -> AgentContext:
    """Return the context of a worker of the fleet."""
    one = PLAN.tasks[number]
    earlier = EarlierAttempt(
        number=1, reason="check_failed", score=Fraction(40), issues=("It counts twice.", "It counts twice when retried."),
        checks=(FailedCheck(id="unit", command="python -m pytest -q", outcome="exit code 1", output="E   assert 2 == 1\n" * 12),),
        answer=answer(number), diff=lines(PARTS[number], 4),
    )  # fmt: skip
    return get_task_context(
        "worker",
        WorkerInput(
            preamble=preamble("worker", one.worker_role),
            task=one,
            attempt=attempt,
            attempts=3,
            tools=("read_file", "list_files", "grep", "write_file", "edit_file", "run"),
            files=tuple(map(view, one.context_files)),
            dependencies=tuple(
                DependencyView(id=d, title=f"Make {PARTS[n]} idempotent", answer=answer(n), files=(f"ledger/{PARTS[n]}.py",))
                for d in one.dependencies
                if (n := int(d.removeprefix("task-"))) >= 0
            ),
            earlier=(earlier,) if attempt > 1 else (),
            hidden=BACKGROUND.hidden_from(one),
        ),
        lane=f"run/{one.id}/{attempt}/worker",
    )  # fmt: skip


def judge(number: int, attempt: int, state: CheckState) -> AgentContext:
    """Return the context of QC for it."""
    one = PLAN.tasks[number]
    changed = [
        ChangedFile(path=path, status="modified", text=FILES[path], diff=lines(PARTS[number], 4))
        for path in one.files
    ]
    related = [RelatedTask(id=d, title="Make it idempotent", status="completed", distance=1, relation="needs") for d in one.dependencies]  # fmt: skip
    return get_task_context(
        "qc",
        QCInput(
            preamble=preamble("qc", one.qc_role),
            task=one,
            attempt=attempt,
            attempts=3,
            answer=answer(number),
            outcomes=(outcome(number, state),),
            changed=tuple(changed),
            related=tuple(related),
            form=instructions(),
            hidden=BACKGROUND.hidden_from(one),
        ),
        lane=f"run/{one.id}/{attempt}/qc",
    )


def fleet() -> Sequence[ContextReceipt]:
    """Return the receipts of all agents of the run, in the order of its tasks."""
    made: list[ContextReceipt] = []
    for number in range(20):
        states: tuple[CheckState, ...] = ("failed", "passed") if number in RETRIED else ("passed",)
        for attempt, state in enumerate(states, start=1):
            made += [worker(number, attempt).receipt, judge(number, attempt, state).receipt]
    return made


def main() -> None:
    """Print the figures of the receipts."""
    receipts = fleet()
    took: list[float] = []
    for number in range(20):
        begun = time.perf_counter()
        worker(number, 1)
        took.append((time.perf_counter() - begun) * 1000)
    of_workers = [one for one in receipts if one.role == "worker"]
    print(f"agents {len(receipts)}, given {sum(one.given_tokens for one in receipts):,} tokens")
    print(f"reduction {reduction_ratio(receipts):.2%} (workers {reduction_ratio(of_workers):.2%})")
    print(f"deduplication {deduplication_ratio(receipts):.2%}")
    print(f"a context with its receipt: median {median(took):.2f} ms")


if __name__ == "__main__":
    main()
