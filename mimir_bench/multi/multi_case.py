"""Cases of the benchmark "multi": project, plan and model scripts of both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mimir.domain.json_value import as_objects
from mimir.domain.plan import Criterion, Plan, Task
from mimir_bench.seeded_random import SeededRandom
from mimir_bench.work_site import REST, Part

Turn = Mapping[str, object]
REQUEST = "Describe what each module of this project does, so that the next person finds a way in."
READ_AT_ONCE = 5
"""Files that the PM reads in one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiCase:
    """A project and its work."""

    tasks: int
    files: int
    workers: int
    latency_seconds: float = 2.0
    """Time that each model needs for an answer."""

    def __str__(self) -> str:
        return f"{self.tasks} tasks, {self.files} files"


def project(case: MultiCase) -> dict[str, str]:
    """Return the files of the project."""
    return {_path(at): _source(at) for at in range(case.files)}


def plan(case: MultiCase) -> Plan:
    """Return the plan; a task depends on up to two earlier ones."""
    return Plan(
        title="Describe the modules",
        tasks=tuple(_task(at) for at in range(case.tasks)),
        request=REQUEST,
        goal="Each module has a page.",
        reasoning="One page a module, and pages that build on each other where modules do.",
    )


def fleet(case: MultiCase, planned: str) -> list[Part]:
    """Return the scripts of PM, agentinator, workers, QC and reporters."""
    pm = [*_research(case), {"text": planned}]
    parts: list[Part] = [_part(case, "pm", "*", pm)]
    for at in range(case.tasks):
        read, write = _calls(at)
        said = [{"calls": [read]}, {"calls": [write]}, {"text": _answer(at)}]
        parts.append(_part(case, "worker", _name(at), said))
    verdict = {"verdict": {"auto": "pass"}, "repeat": "forever"}
    parts.append(_part(case, "qc", "*", [verdict]))
    # The first part of REST is QC's, which this case defines with its own latency.
    parts += [_part(case, str(part["role"]), "*", _turns(part)) for part in REST[1:]]
    return parts


def single_agent_script(case: MultiCase, planned: str) -> list[Part]:
    """Return the script of one agent that researches, plans and does every task."""
    said: list[Turn] = [*_research(case)]
    before = planned
    for at in range(case.tasks):
        read, write = _calls(at)
        # The text of one task goes with the first call of the next: a turn less for each task.
        said += [{"text": before, "calls": [read]}, {"calls": [write]}]
        before = _answer(at)
    return [_part(case, "worker", "*", [*said, {"text": before}])]


def single_task_plan(case: MultiCase) -> Plan:
    """Return the plan whose one task is the whole request."""
    task = Task(
        id="all",
        title="Describe the modules",
        prompt=REQUEST,
        worker_role="Technical writer who reads Python",
        criteria=(Criterion(id="c1", text="Each module has a page", points=Fraction(100)),),
        estimated_tool_calls=case.tasks * 2 + case.files,
        # All tasks in one attempt take hours of virtual time.
        time_limit_minutes=24 * 60,
        max_retries=0,
    )
    return Plan(title="Describe the modules", tasks=(task,), request=REQUEST, goal="Done.")


def _research(case: MultiCase) -> list[Turn]:
    """List the files and read every fifth of them."""
    # Not the files of the tasks, which their workers read themselves.
    paths = [_path(at) for at in range(case.tasks, case.files, 5)] or [_path(case.files - 1)]
    reads = [{"tool": "read_file", "arguments": {"path": path}} for path in paths]
    turns = [{"calls": reads[n : n + READ_AT_ONCE]} for n in range(0, len(reads), READ_AT_ONCE)]
    return [{"calls": [{"tool": "list_files", "arguments": {"glob": "**"}}]}, *turns]


def _turns(part: Part) -> Sequence[Turn]:
    return as_objects(part["turns"])


def _part(case: MultiCase, role: str, task: str, turns: Sequence[Turn]) -> Part:
    slow = [{**turn, "delay_seconds": case.latency_seconds} for turn in turns]
    return {"role": role, "task": task, "turns": slow}


def _task(at: int) -> Task:
    # By its number alone: a task is the same in every project size.
    draw = SeededRandom("multi", at)
    # The ten tasks before it, as pages build on their neighbours.
    needs = sorted(draw.some_of(range(max(0, at - 10), at), min(at, draw.whole(0, 2))))
    return Task(
        id=_name(at),
        title=f"Page of module {at}",
        prompt=(
            f"Read {_path(at)} and write docs/module_{at:03}.md: what the module is for, each of its functions with "
            "what it takes and gives, and what of it the pages before this one already told."
        ),
        worker_role="Technical writer who reads Python",
        qc_role="Editor who checks pages against the code",
        criteria=(
            Criterion(id="c1", text="The page names every function", points=Fraction(60)),
            Criterion(id="c2", text="What it says is true of the code", points=Fraction(40)),
        ),
        dependencies=tuple(_name(n) for n in needs),
        estimated_tool_calls=4,
        estimated_minutes=5,
        max_retries=0,
    )


def _calls(at: int) -> tuple[Turn, Turn]:
    page = {"path": f"docs/module_{at:03}.md", "content": _page(at)}
    return (
        {"tool": "read_file", "arguments": {"path": _path(at)}},
        {"tool": "write_file", "arguments": page},
    )


def _answer(at: int) -> str:
    return (
        f"The page of module {at} is written. [call:1] It names the functions step_{at}_0 to step_{at}_7, each with its "
        "arguments and what it returns, and says what the module is for. Nothing of the code was changed, and no other "
        "page was touched."
    )


def _page(at: int) -> str:
    rows = [f"- `step_{at}_{k}(values, limit={k + 3})`: {_DOES[k]}" for k in range(8)]
    return (
        f"# Module {at}\n\nIt prepares the values of stage {at} for the next one.\n\n"
        + "\n".join((*rows, ""))
    )


def _source(at: int) -> str:
    body = "    kept = [value for value in values if value is not None]\n    return kept[:limit]\n"
    return f'"""Stage {at} of the pipeline."""\n\n' + "\n\n".join(
        f'def step_{at}_{k}(values, limit={k + 3}):\n    """{_DOES[k]}"""\n{body}' for k in range(8)
    )


_DOES = (
    "Drops what is missing and keeps the first ones.",
    "Sorts by the time of arrival, the oldest first.",
    "Joins neighbours that say the same thing twice.",
    "Replaces units by those of the next stage.",
    "Splits what belongs to more than one owner.",
    "Marks what lies outside of the usual range.",
    "Counts by owner, and keeps the largest ones.",
    "Writes the rest in the order of the owners.",
)


def _path(at: int) -> str:
    return f"src/stage_{at:03}.py"


def _name(at: int) -> str:
    return f"task-1.{at + 1}"
