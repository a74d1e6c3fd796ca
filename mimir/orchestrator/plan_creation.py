"""The verb `make_plan`: request → Ecko (optional) → PM → checked plan → file. A run of its own, journaled like any other."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from mimir.agents.agent_loop import LoopServices, ModelSettings
from mimir.agents.circuit_breaker import CircuitBreaker
from mimir.agents.context.inputs import FileView, MemoryHit, PMInput
from mimir.agents.context.task_context import get_task_context
from mimir.agents.preambles import templates
from mimir.agents.stopwatch import WorkTimer
from mimir.attempts.deliverable import HIDDEN
from mimir.domain.agent import ALL_TOOLS, ROLES
from mimir.domain.event import EventKind
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.message import CallContext, Message
from mimir.domain.plan import Plan
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RunStatus
from mimir.errors import AnswerError, ModelError, Paused
from mimir.llm import codec
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.orchestrator import run_models
from mimir.orchestrator.services import ProjectServices
from mimir.planning import ecko
from mimir.planning.format.diagnostics import PlanFinding
from mimir.planning.format.labels import format_instructions
from mimir.planning.format.slug import slug
from mimir.planning.planner import PlannerServices, PlanProposal, propose
from mimir.planning.renderer import render
from mimir.scheduling import lifecycle
from mimir.store import row_fields
from mimir.store.operations import budget, memory, runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import Row, WriteOps
from mimir.store.schema import NodeLabel, pack, unpack
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.tools.empty import NO_TOOLS
from mimir.tools.protocol import Toolset
from mimir.workspace.paths import DirectoryTree
from mimir.workspace.state_dir import write_state_file

READ_FIRST = (
    "README.md",
    "README.rst",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
    "package.json",
)
READ_FIRST_BYTES = 40_000
PM_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningResult:
    """What planning came to."""

    run: str
    path: str
    """Of the plan, relative to the project."""
    plan: Plan
    findings: tuple[PlanFinding, ...]
    exit_code: int
    """0, or 65: saved with findings that it cannot run with."""


async def create_planning_run(
    parts: ProjectServices,
    request: str,
    *,
    with_ecko: bool,
    output: str,
    model: str,
    limits: RunBudget,
) -> str:
    """Make a planning run; its id.

    Raises:
        ConfigurationError: No model can be asked, or money is bounded and one has no price.
    """
    parts.check_models()
    if limits.max_cost is not None:
        budget.must_have_prices(parts.prices, models_of_planning(parts, model))
    run = parts.ids.new("plan")
    base = await parts.history.base(run, hidden=HIDDEN)
    new = NewRun(
        id=run,
        kind="plan",
        project_id=parts.project_id,
        project_name=parts.project.name,
        name=" ".join(request.split())[:80] or run,
        request=request,
        plan=None,
        plan_path=output or _new_path(parts, request),
        settings={**parts.pinned, "ecko": with_ecko, "model": model},
        engine_version=parts.engine_version,
        base_commit=base.commit,
        base_tree=base.tree,
        max_calls=limits.max_calls,
        max_tokens=limits.max_tokens,
        max_cost=limits.max_cost,
        prices=parts.prices,
    )
    await parts.store.write(partial(runs.create, new=new))
    return run


def models_of_planning(parts: ProjectServices, model: str) -> frozenset[str]:
    """Return the names of the models that planning may ask; `model`: the one that was asked for, if any."""
    return frozenset(model or parts.choices[role].model for role in ("ecko", "pm"))


async def raise_limits(parts: ProjectServices, run: str, limits: RunBudget) -> None:
    """Set new totals of a planning run.

    Raises:
        ConfigurationError: Its money is to be bounded, and a model had no price when it began.
    """
    row = await parts.store.read(partial(runs.get, run=run))
    if limits.max_cost is not None or row.get("maxCost") is not None:
        model = str(row_fields.json_field(row, "settingsJson").get("model") or "")
        budget.must_be_priced(row, models_of_planning(parts, model))
    await parts.store.write(partial(lifecycle.set_limits, run=run, limits=limits))


async def make_plan(
    parts: ProjectServices, run: str, *, models: Mapping[str, str] | None = None
) -> PlanningResult:
    """Hold the conversations of a planning run, from the record as far as it goes, and write the plan; `models` are asked from now on.

    Raises:
        Paused: The run can be resumed.
        AnswerError: A model gave no usable answer; the run has failed.
        ModelError: The provider refuses the conversation; the run has failed.
    """
    await parts.store.write(
        partial(
            lifecycle.take_run,
            run=run,
            owner=parts.owner,
            seconds=parts.lease_seconds,
            dead=parts.owners.find_dead(),
            resumed=True,
            models=models,
        )
    )
    row = await parts.store.read(partial(runs.get, run=run))
    try:
        planned = await _PlanningRun(run_models.services_for_run(parts, row), row).through()
    except Paused as paused:
        await parts.store.write(
            partial(lifecycle.pause, run=run, owner=parts.owner, paused=paused, seconds=0.0)
        )
        raise
    except (AnswerError, ModelError) as error:
        data = {"message": str(error)}
        await parts.store.write(
            partial(lifecycle.end, run=run, owner=parts.owner, outcome=RunStatus.FAILED, data=data)
        )
        raise
    outcome = RunStatus.COMPLETED if planned.exit_code == 0 else RunStatus.FAILED
    data = {"plan": planned.path, "tasks": len(planned.plan.tasks)}
    await parts.store.write(
        partial(lifecycle.end, run=run, owner=parts.owner, outcome=outcome, data=data)
    )
    return planned


class _PlanningRun:
    """One planning run."""

    def __init__(self, parts: ProjectServices, row: Row) -> None:
        self._parts = parts
        self._row = row
        self._run = str(row["id"])
        settings = row_fields.json_field(row, "settingsJson")
        self._with_ecko = settings.get("ecko") is True

    async def through(self) -> PlanningResult:
        parts, request = self._parts, row_fields.text_field(self._row, "request")
        where = parts.work_room / self._run / "pm"
        base = row_fields.text_field(self._row, "baseTree")
        await parts.history.checkout(base, where)
        try:
            specification = await self._specify(request) if self._with_ecko else ""
            proposal = await self._propose(request, specification, base)
        finally:
            shutil.rmtree(where.parent, ignore_errors=True)
        path = row_fields.text_field(self._row, "planPath")
        write_state_file(parts.project, path, _text(proposal).encode())
        await self._keep_made(_text(proposal))
        return PlanningResult(
            run=self._run,
            path=path,
            plan=proposal.plan,
            findings=proposal.findings,
            exit_code=0 if proposal.acceptable else 65,
        )

    async def _keep_made(self, text: str) -> None:
        """Keep the plan as it was saved: the file is the person's from now on."""
        row = {
            "id": f"{self._run}#made",
            "name": "made",
            "runId": self._run,
            "kind": "made",
            "text": text,
        }
        await self._parts.store.write(lambda ops: ops.upsert(NodeLabel.ARTIFACT, [row]))

    async def _specify(self, request: str) -> str:
        system = templates.system_message("ecko", self._parts.project)
        lane = await self._lane("ecko")
        text = await ecko.specify(request, system, self._services("ecko", lane, NO_TOOLS))
        await lane.flush()
        return text

    async def _propose(self, request: str, specification: str, base: str) -> PlanProposal:
        parts = self._parts
        lane = await self._lane("pm")
        known = frozenset(await parts.history.paths(base, None))
        brief = await self._brief(request, specification, base)
        where = parts.work_room / self._run / "pm"
        desk = PlannerServices(
            services=self._services("pm", lane, parts.planner_tools(where, lane)),
            tools=ALL_TOOLS,
            exists=lambda path: path in known,
            on_proposal=self._proposed,
        )
        proposal = await propose(request, brief, desk)
        await lane.flush()
        return proposal

    async def _brief(self, request: str, specification: str, base: str) -> tuple[Message, ...]:
        """Return the PM's brief: as stored, or made now and stored; the memory may have changed meanwhile."""
        id = f"{self._run}#brief"
        kept = await self._parts.store.read(lambda reads: reads.get(NodeLabel.ARTIFACT, id))
        if kept:
            rows = cast("list[object]", unpack(row_fields.text_field(kept, "text")))
            return tuple(codec.read_message(row) for row in rows)
        brief = get_task_context("pm", await self._input(request, specification, base)).messages
        text = pack([codec.message_json(message) for message in brief])
        row = {"id": id, "name": "brief", "runId": self._run, "kind": "brief", "text": text}
        await self._parts.store.write(lambda ops: ops.upsert(NodeLabel.ARTIFACT, [row]))
        return brief

    async def _input(self, request: str, specification: str, base: str) -> PMInput:
        parts = self._parts
        sizes = await asyncio.to_thread(_sizes, parts.work_room / self._run / "pm")
        sizes.pop(parts.recording, None)
        first = [await self._file(base, path) for path in READ_FIRST if path in sizes]
        return PMInput(
            preamble=templates.system_message("pm", parts.project),
            request=request,
            specification=specification,
            repository=tuple(sorted(sizes.items())),
            files=tuple(first),
            memory=await self._remembered(request),
            form=format_instructions(),
        )

    async def _remembered(self, request: str) -> tuple[MemoryHit, ...]:
        """Return what the memory knows of similar work: notes, and lessons of failed tasks."""
        view = memory.MemoryScope(project=self._parts.project_id)
        found = partial(memory.search_nodes, view=view, text=request, labels=("Memory",), limit=10)
        return tuple(
            MemoryHit(
                id=str(node["id"]),
                kind=str(node.get("kind") or "note"),
                title=str(node.get("name") or ""),
                text=str(node.get("text") or ""),
            )
            for node in await self._parts.store.read(found)
        )

    async def _file(self, tree: str, path: str) -> FileView:
        content = await self._parts.history.file(tree, path) or b""
        if len(content) > READ_FIRST_BYTES:
            return FileView(path=path, size=len(content), text=None, note="large")
        text = self._parts.redact(content.decode("utf-8", "replace"))
        return FileView(path=path, size=len(content), text=text)

    async def _lane(self, role: str) -> StoredTranscript:
        return await StoredTranscript.open(
            self._parts.store, run=self._run, task=PLAN_TASK, attempt=1, role=role, fence=None
        )

    def _services(self, role: str, lane: StoredTranscript, tools: Toolset) -> LoopServices:
        parts, choice = self._parts, self._parts.choices[role]
        watch = WorkTimer(parts.clock)
        watch.start()
        name = lane_id(self._run, PLAN_TASK, 1, role)
        limits = ROLES[role]
        return LoopServices(
            model=JournaledModel(parts.models.for_lane(role, name, choice.model), lane),
            tools=tools,
            context=CallContext(
                project=parts.project_id, run=self._run, task=PLAN_TASK, attempt=1, role=role
            ),
            breaker=CircuitBreaker.for_estimate(
                None, seconds=PM_SECONDS, max_tokens=parts.attempt_tokens
            ),
            settings=ModelSettings(
                model=choice.model,
                temperature=choice.temperature,
                answer_tokens=choice.max_tokens or limits.answer_tokens,
                working_tokens=choice.max_tokens or limits.working_tokens,
            ),
            elapsed=watch,
        )

    async def _proposed(self, proposal: PlanProposal) -> None:
        kind = EventKind.PLAN_REPAIRED if proposal.repairs else EventKind.PLAN_PROPOSED
        errors = sum(f.severity == "error" for f in proposal.findings)
        data = {"tasks": len(proposal.plan.tasks), "errors": errors, "repairs": proposal.repairs}

        def work(ops: WriteOps) -> None:
            runs.append_event(ops, self._run, kind, data=data)

        await self._parts.store.write(work)


def _sizes(where: Path) -> dict[str, int]:
    """Return the bytes of each regular file below a checkout, by its path."""
    tree = DirectoryTree(where)
    return {path: tree.size(path) for path in tree.walk()}


def _text(proposal: PlanProposal) -> str:
    """Return what is saved: the canonical form of an acceptable plan; else the PM's own text, whose lines the findings name."""
    return render(proposal.plan) if proposal.acceptable else proposal.text


def _new_path(parts: ProjectServices, request: str) -> str:
    """Return `chains/<slug>/chain-output.md`; a number is added rather than an older plan overwritten."""
    name = slug(request)
    number = 1
    while (parts.project / _place(name, number)).exists():
        number += 1
    return f"{_place(name, number)}/chain-output.md"


def _place(name: str, number: int) -> str:
    return f"chains/{name}" if number == 1 else f"chains/{name}-{number}"
