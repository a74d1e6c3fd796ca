"""Workloads of engine and peers: task graphs, tool calls and model answers.

A worker calls tools in two or three turns and closes, QC judges: 4.6 model calls a task on average.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mimir.domain.plan import Check, Criterion, Plan, Task

Graph = Literal["layered", "chain", "fan-in"]
Work = Literal["answers", "files"]

FILES = 20
"""Files of the project that tasks read."""
LAYER = 10
# Mean 2.6 tool turns; with closing answer and verdict 4.6 calls a task.
_TURNS = (3, 2, 3, 3, 2)
_NEEDS = 2
"""Tasks of the layer before that a layered task depends on."""
JUDGED = "the criterion is met as asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A task graph with the work of each task."""

    graph: Graph = "layered"
    tasks: int = 100
    """In a fan-in: the tasks that one more task depends on."""
    work: Work = "answers"
    """Deliverable: a closing answer, or a file with a check."""
    answer_bytes: int = 200
    """Of a worker's closing answer."""
    tools: bool = True
    """False: workers answer at once."""

    def __str__(self) -> str:
        bare = "" if self.tools else ", no tools"
        return f"{self.graph} {self.tasks}, {self.work}, {self.answer_bytes} B{bare}"


def name(number: int) -> str:
    """Return a task's id."""
    return f"t{number:05}"


def number(task: str) -> int:
    """Return a task's number; -1 for another text."""
    return int(task[1:]) if task[:1] == "t" and task[1:].isdecimal() else -1


def count(load: Workload) -> int:
    """Return the number of tasks."""
    return load.tasks + (load.graph == "fan-in")


def needs(load: Workload, at: int) -> tuple[int, ...]:
    """Return the dependencies of a task."""
    match load.graph:
        case "chain":
            return (at - 1,) if at else ()
        case "fan-in":
            return tuple(range(load.tasks)) if at == load.tasks else ()
        case "layered":
            first = at // LAYER * LAYER - LAYER
            return () if first < 0 else tuple(first + (at + n) % LAYER for n in range(_NEEDS))


def tool_turns(load: Workload, at: int) -> int:
    """Return the number of turns in which the worker calls a tool."""
    return _TURNS[at % len(_TURNS)] if load.tools else int(load.work == "files")


def arguments(load: Workload, at: int, turn: int) -> tuple[str, str]:
    """Return the tool of a turn, and its arguments as JSON."""
    if load.work == "files" and turn == tool_turns(load, at) - 1:
        return "write_file", json.dumps({"path": path(at), "content": content(at)})
    return "read_file", json.dumps({"path": source((at * 3 + turn) % FILES)})


def calls(load: Workload) -> int:
    """Return the number of model calls: tool turns, closing answers and verdicts."""
    return sum(tool_turns(load, at) + 2 for at in range(count(load)))


def source(at: int) -> str:
    """Return the path of a project file."""
    return f"src/part_{at:02}.py"


def path(at: int) -> str:
    """Return the path of the file that a task writes."""
    return f"out/{name(at)}.txt"


def content(at: int) -> str:
    """Return the content of that file."""
    return f"The result of task {name(at)} is {at * 17 % 101} and it holds.\n"


def project() -> dict[str, str]:
    """Return the files of the project."""
    line = '    """Return a part of the whole, as the others expect it of this one."""\n'
    return {
        source(n): "".join(
            f"def part_{n}_{k}(x):\n{line}    return x + {k}\n\n\n" for k in range(6)
        )
        for n in range(FILES)
    }


def closing_answer(load: Workload, at: int) -> str:
    """Return a worker's closing answer."""
    first = f"Task {name(at)} is done: {JUDGED}, and the result is {at * 17 % 101}. "
    more = f"Part {at} was read and its functions were compared with what the task asks for. "
    # The first sentence, which the verdict quotes, must never be cut off.
    return (first + more * (load.answer_bytes // len(more) + 1))[: max(load.answer_bytes, 100)]


def verdict(load: Workload, at: int) -> str:
    """Return QC's answer for a task."""
    by_file = load.work == "files"
    row = {
        "id": "c1",
        "state": "passed",
        # A real quote: the engine looks it up in the source, and would reject another one.
        "quote": content(at).strip() if by_file else closing_answer(load, at)[:60],
        "source": f"file:{path(at)}" if by_file else "answer",
    }
    return json.dumps(
        {
            "verdict": "PASS",
            "score": 100,
            "feedback": "It is as asked.",
            "issues": [],
            "requiredFixes": [],
            "criteria": [row],
            "fixes": [],
        }
    )


PREAMBLE = "\n".join(
    f"## {part}\n{'Work with care, look before you write, and say what you saw. ' * 5}"
    for part in ("Expertise", "How to work", "Use of tools", "Output")
)
"""Preamble of workers and QC, as long as one that a model writes."""


def prompt(load: Workload, at: int) -> str:
    """Return the prompt of a task."""
    asked = f"Write {path(at)}." if load.work == "files" else "Say what you found."
    return f"Read the parts of the project that task {name(at)} is about and compare them. {asked}"


def plan(load: Workload) -> Plan:
    """Return the workload as a plan."""
    tasks = tuple(_task(load, at) for at in range(count(load)))
    return Plan(title=str(load), tasks=tasks, request="Compare the parts.", goal="Compared.")


def _task(load: Workload, at: int) -> Task:
    writes = load.work == "files"
    check = Check(
        id="there", criteria=("c1",), run=("grep", "-q", "it holds", path(at)), kind="flip"
    )
    return Task(
        id=name(at),
        title=f"Compare parts for {name(at)}",
        prompt=prompt(load, at),
        worker_role="Reader of small programs",
        qc_role="Reviewer of small programs",
        criteria=(Criterion(id="c1", text="What was asked is there", points=Fraction(100)),),
        checks=(check,) if writes else (),
        dependencies=tuple(name(n) for n in needs(load, at)),
        files=(path(at),) if writes else (),
        estimated_tool_calls=max(1, tool_turns(load, at)),
        # A retry would add calls that the peers do not make.
        max_retries=0,
    )
