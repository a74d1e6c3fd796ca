"""A whole run in a test: a project, a plan and a play go in; the ending, and all that the run left behind, come out.

Everything is the real thing but the model's words: store, git, sandbox, checks and seals as `app.open` puts them together.
"""

# The scripted model names its lane in a private attribute.
# pyright: reportPrivateUsage=false

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimir.bootstrap import app
from mimir.domain.plan import Check, CheckKind, Criterion, Plan, Task
from mimir.domain.run import Apply, RunBudget, RunResult
from mimir.domain.task_states import TaskStatus
from mimir.errors import PlanError
from mimir.llm.scripted.scripted_model import ScriptedModel
from mimir.orchestrator.api import Mimir
from mimir.planning import parser
from mimir.planning.renderer import render
from mimir.scheduling.completion.transition import ClaimJournal
from mimir.settings import layers
from tests.support.projects import make_project
from tests.support.run_facts import Facts, gather

Turn = Mapping[str, object] | str
Part = Mapping[str, object]
PASS: Turn = {"verdict": {"auto": "pass"}, "repeat": "forever"}
FAIL: Turn = {"verdict": {"auto": "fail"}, "repeat": "forever"}
PLAN_PATH = "chains/journey/chain-output.md"
README = {"README.md": "# A project\n"}

PREAMBLE = "\n".join(
    f"## {name}\n{'Work with care, look before you write, and say what you saw. ' * 3}"
    for name in ("Expertise", "How to work", "Use of tools", "Output")
)
REST: Sequence[Part] = (
    {"role": "agentinator", "turns": [{"text": PREAMBLE, "repeat": "forever"}]},
    {"role": "*_reporter", "turns": [{"text": "Some prose about it.", "repeat": "forever"}]},
    {"role": "qc", "turns": [PASS]},
)
"""The end of every model script: preambles, narrative, and a QC that passes all other criteria."""


def check(
    *run: str, criteria: Sequence[str] = ("c1",), kind: CheckKind = "flip", **more: Any
) -> Check:
    """Return a check of this command; its id is `unit` by default."""
    made = Check(id="unit", criteria=tuple(criteria), run=run, kind=kind)
    return replace(made, **more)


def holds(path: str, text: str, **more: Any) -> Check:
    """Return a check that a file holds a text."""
    return check("grep", "-q", text, path, **more)


def step(id: str, *needs: str, **fields: object) -> Task:
    """Return a task that writes `<id>.txt`, with a check that it holds its own id; `fields` replace the defaults."""
    given: dict[str, object] = {
        "id": id,
        "title": f"Write {id}.txt",
        "prompt": f"Write {id}.txt.",
        "worker_role": "Writer of small files",
        "qc_role": "Reviewer of small files",
        "criteria": (Criterion(id="c1", text=f"{id}.txt is right", points=Fraction(100)),),
        "checks": (holds(f"{id}.txt", f"^{id}$"),),
        "dependencies": needs,
        "estimated_tool_calls": 4,
        "max_retries": 0,
    }
    return Task(**{**given, **fields})  # type: ignore[arg-type]


def plan(*tasks: Task, title: str = "A journey") -> Plan:
    """Return a plan of these tasks, as its own markdown is read: losses of the form are losses here too."""
    made = Plan(title=title, tasks=tasks, request="Do it.", goal="It is done.")
    parsed = parser.parse_plan(render(made))
    assert not parsed.findings
    return parsed.plan


def calls(tool: str, times: int = 1, **arguments: object) -> dict[str, object]:
    """Return a wish for a tool; `times` of them, if more than one."""
    return {"tool": tool, "arguments": arguments, **({"times": times} if times > 1 else {})}


def writes(path: str, content: str) -> dict[str, object]:
    """Return a turn that writes a file."""
    return {"calls": [calls("write_file", path=path, content=content)]}


def shell(command: str) -> dict[str, object]:
    """Return a turn that runs a command line."""
    return {"calls": [calls("run", command=command)]}


def worker(task: str, *turns: Turn, attempt: object = None, **more: object) -> Part:
    """Return the answers of a task's worker in an attempt; in every one, if none is named."""
    which = {} if attempt is None else {"attempt": attempt}
    return {"role": "worker", "task": task, "turns": list(turns), **which, **more}


def wrote(task: str, **more: object) -> Part:
    """Return a worker that does the task of `step`."""
    return worker(task, writes(f"{task}.txt", f"{task}\n"), f"{task}.txt is written.", **more)


LINES = "".join(f"line {n}\n" for n in range(12))
SHARED = {"README.md": "Hi\n", "shared.txt": LINES}
"""A project in which tasks meet in one file."""


def edit(task: str, line: int) -> dict[str, object]:
    """Return a turn that puts the task's name on a line of the shared file."""
    old, new = f"line {line}\n", f"line {line} of {task}\n"
    return {"calls": [calls("edit_file", path="shared.txt", old=old, new=new)]}


def sharer(id: str, *needs: str, **fields: object) -> Task:
    """Return a task that must write its name into the shared file."""
    return step(id, *needs, **{"checks": (holds("shared.txt", f"of {id}"),), **fields})


def qc(task: str, *turns: Turn, **more: object) -> Part:
    """Return the QC answer for a task."""
    return {"role": "qc", "task": task, "turns": list(turns), **more}


@dataclass(frozen=True, kw_only=True)
class Journey:
    """A run that has come to an end, or to a pause."""

    ending: RunResult
    facts: Facts
    report: str
    """The execution report; empty: there is none."""
    report_json: Mapping[str, object]
    status: Mapping[str, object]
    """The shape of `status --json`."""

    @property
    def flat_report(self) -> str:
        """The report without line breaks: it is wrapped where its lines are full."""
        return " ".join(self.report.split())

    @property
    def statuses(self) -> Mapping[str, str]:
        """Task → its status."""
        return self.facts.statuses

    def failure(self, task: str) -> Mapping[str, object]:
        """Return the failure report of a task, from the report's JSON twin."""
        reports: Sequence[Mapping[str, object]] = self.report_json["failures"]  # type: ignore[assignment]
        return next(report for report in reports if report["task"] == task)


@contextlib.asynccontextmanager
async def opened(project: Path, parts: Sequence[Part], **flags: object) -> AsyncGenerator[Mimir]:
    """Open mimir on a project with a play that is written beside it."""
    play = project.parent / f"{project.name}.play.yaml"
    play.write_text(yaml.safe_dump({"parts": [*parts, *REST]}), encoding="utf-8")
    given = {
        "llm.model": f"play:{play}",
        **{name.replace("__", "."): v for name, v in flags.items()},
    }
    loaded = layers.load(project, given, {"HOME": str(project.parent)})
    async with app.open(project, loaded) as mimir:
        yield mimir


async def travel(
    project: Path,
    made: Plan,
    parts: Sequence[Part],
    *,
    workers: int = 2,
    apply: Apply = "never",
    limits: RunBudget | None = None,
    **flags: object,
) -> Journey:
    """Run a plan to its end on a project that is there."""
    async with opened(project, parts, **flags) as mimir:
        none = RunBudget()
        run = await mimir.create_run(made, PLAN_PATH, only=(), limits=none)
        drive = partial(mimir.drive, run, workers=workers, apply=apply, limits=limits or none)
        ending = await drive(resumed=False)
        if ending.exit_code == PlanError.exit_code:  # the user accepts the checks as they are
            ending = await drive(resumed=True)
        return await look(mimir, project, ending)


async def look(mimir: Mimir, project: Path, ending: RunResult) -> Journey:
    """Gather all that a run left behind; however it ended, its seals hold.

    Raises:
        AssertionError: `mimir verify` finds something wrong in the engine's own records.
    """
    verified = await mimir.verify(ending.run, ending.seal)
    assert verified.ok, verified.problems
    report = project / ending.report_path
    return Journey(
        ending=ending,
        facts=await gather(project, ending.run),
        report=report.read_text(encoding="utf-8") if report.is_file() else "",
        report_json=json.loads(json.dumps(await mimir.report_json(ending.run))),
        status=json.loads(json.dumps(await mimir.status(ending.run))),
    )


def start(tmp_path: Path, files: Mapping[str, str] = README) -> Path:
    """Make a project in a git repository of its own."""
    return make_project(tmp_path / "project", files)


class Curtain:
    """Holds a worker's words back until another task has come to its end: order without waiting for a clock."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._ended: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, str] = {}
        ask, move = ScriptedModel.ask, ClaimJournal.transition

        async def held(model: ScriptedModel, request: object) -> object:
            lane = model._lane.split("/", 1)[1]
            if lane in self._waiting:
                await self._event(self._waiting[lane]).wait()
            return await ask(model, request)  # type: ignore[arg-type]

        async def moved(
            journal: ClaimJournal, to: TaskStatus, *given: object, **named: object
        ) -> bool:
            done = await move(journal, to, *given, **named)  # type: ignore[arg-type]
            if done and to in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.PREPARING_RETRY):
                self._event(journal.claim.task).set()
            return done

        patch.setattr(ScriptedModel, "ask", held)
        patch.setattr(ClaimJournal, "transition", moved)

    def hold(self, task: str, *, until: str, attempt: int = 1, role: str = "worker") -> "Curtain":
        """Hold this transcript before task `until` has ended an attempt."""
        self._waiting[f"{task}/{attempt}/{role}"] = until
        return self

    def _event(self, task: str) -> asyncio.Event:
        return self._ended.setdefault(task, asyncio.Event())
