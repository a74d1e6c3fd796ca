"""A stand-in for `mimir.bootstrap.app`: it records the calls of the command line, and the test sets its answers."""

# The fake application notes its calls in the private journal of its fake.
# pyright: reportPrivateUsage=false

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import cast

import mimir.bootstrap as mimir_bootstrap
from mimir.domain.estimates import LearnedEstimate
from mimir.domain.event import Event, EventKind
from mimir.domain.forecast import RunForecast, forecast_run
from mimir.domain.invocation import PinnedDefinition
from mimir.domain.plan import Plan, Task
from mimir.domain.run import Apply, RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import UsageError
from mimir.orchestrator.patterns.choose import PatternChoice, PatternOptions, PlanFollowing
from mimir.settings.layers import LoadedSettings

RUN = "run-1"
PLAN = """\
# Plan: Limiter
**Goal:** A limiter
## Tasks
### task-0: Look
**Task ID:** task-0
**Title:** Look
**Agent Role Description:** Engineer
**Prompt:**
<prompt>
Look.
</prompt>
**Dependencies:**
**Estimated Tool Calls:** 8
**QC Agent Role Description:** Reviewer
**Verification Criteria:**
- [ ] (100 pts) c1: it is there
**Checks:**
```yaml
- id: unit
  criteria: [c1]
  run: [python, -m, pytest, -q]
  kind: hold
```
### task-1: Build
**Task ID:** task-1
**Title:** Build
**Agent Role Description:** Engineer
**Prompt:**
<prompt>
Build.
</prompt>
**Files:** limiter.py
**Dependencies:** task-0
**Estimated Tool Calls:** 8
**QC Agent Role Description:** Reviewer
**Verification Criteria:**
- [ ] (60 pts) [critical] c1: it works
- [ ] (40 pts) c2: it is small
**Checks:**
```yaml
- id: unit
  criteria: [c1]
  run: [python, -m, pytest, -q]
  kind: flip
```
"""
"""Two tasks, nothing to complain about."""
CREATED = Event(
    seq=1,
    kind=EventKind.RUN_CREATED,
    run=RUN,
    at="2026-01-02T03:04:05.000000Z",
    data={"name": "Limiter", "tasks": ["task-0", "task-1"]},
)
DONE = RunResult(
    run=RUN,
    outcome=RunStatus.COMPLETED,
    exit_code=0,
    plan_path="chains/limiter/chain-output.md",
    report_path="chains/limiter/execution-report.md",
    applied=("a.py",),
    seal="5ea1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The result of one command line."""

    code: int
    out: str
    err: str

    @property
    def shape(self) -> Mapping[str, object]:
        """The one JSON object that was printed."""
        return cast("Mapping[str, object]", json.loads(self.out))


Mimir = Callable[..., Said]


def event(kind: EventKind, task: str = "", attempt: int = 0, /, **data: object) -> Event:
    """Return an event; its number is assigned when it is emitted."""
    return Event(seq=0, kind=kind, run=RUN, at=CREATED.at, task=task, attempt=attempt, data=data)


def numbered(events: Sequence[Event]) -> list[Event]:
    """Return the events with numbers from 1, a second apart."""
    return [
        replace(one, seq=n, at=f"2026-01-02T03:04:{5 + n - 1:02d}.000000Z")
        for n, one in enumerate(events, start=1)
    ]


@dataclass(slots=True, kw_only=True)
class FakePlanned:
    run: str = "plan-1"
    path: str = "chains/limiter/chain-output.md"
    plan: Plan = field(
        default_factory=lambda: Plan(
            title="Limiter",
            tasks=(Task(id="task-0", title="Look", prompt="Look.", worker_role="Engineer"),),
        )
    )
    findings: tuple[object, ...] = ()
    exit_code: int = 0
    pattern: PatternChoice = field(default_factory=lambda: PatternChoice(pattern="direct"))


@dataclass(slots=True, kw_only=True)
class FakeVerified:
    run: str = RUN
    ok: bool = True
    records: int = 7
    seal: str = "5ea1"
    record: str = ""
    problems: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class FakeDiagnosis:
    subject: str
    ok: bool
    detail: str = ""
    fix: str = ""


@dataclass(slots=True, kw_only=True)
class FakeCopied:
    runs: tuple[str, ...] = (RUN,)
    known: tuple[str, ...] = ("run-0",)
    nodes: int = 12
    edges: int = 7


@dataclass(slots=True, kw_only=True)
class FakeMimir:
    """Answers; `asked` holds its calls, in order."""

    store_uri: str = "sqlite:.mimir/mimir.db"
    planned: FakePlanned = field(default_factory=FakePlanned)
    story: Sequence[Event] = (CREATED,)
    """Events during the run; their position gives their numbers."""
    told_before: int = 0
    """How many of them had happened before."""
    ending: RunResult = DONE
    hangs: bool = False
    """True: the run continues until it is cancelled."""
    rests: bool = True
    """False: cancelled, it does not come to rest."""
    raises: Mapping[str, BaseException] = field(default_factory=dict[str, BaseException])
    """By verb."""
    verified: FakeVerified = field(default_factory=FakeVerified)
    diagnoses: Sequence[FakeDiagnosis] = (FakeDiagnosis(subject="git", ok=True, detail="found"),)
    known: Mapping[str, LearnedEstimate] = field(default_factory=dict[str, LearnedEstimate])
    """Learned estimates of finished runs, by role."""
    state: Mapping[str, object] = field(default_factory=dict[str, object])
    """Further members of `status`."""
    planning_limits: RunBudget | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    opened: list[tuple[Path, LoadedSettings, bool]] = field(
        default_factory=list[tuple[Path, LoadedSettings, bool]]
    )
    _told: list[Event] = field(default_factory=list[Event])

    def _note(self, verb: str, *rest: object) -> None:
        self.asked.append((verb, *rest))
        if verb in self.raises:
            raise self.raises[verb]

    async def create_planning_run(
        self,
        request: str,
        *,
        ecko: bool,
        output: str | None,
        model: str,
        limits: RunBudget,
        pattern: PatternOptions,
    ) -> str:
        del pattern
        self._note("plan", request, ecko, output, model)
        self.planning_limits = limits
        return self.planned.run

    async def make_plan(self, run: str) -> FakePlanned:
        del run
        return self.planned

    async def find_following(self, run: str) -> PlanFollowing:
        del run
        return PlanFollowing(path="", then="stop", settings={})

    async def create_run(
        self,
        plan: Plan,
        plan_path: str,
        *,
        only: Sequence[str],
        limits: RunBudget,
        from_run: str = "",
        agents: Sequence[PinnedDefinition] = (),
    ) -> str:
        del agents
        tasks = tuple(task.id for task in plan.tasks)
        self._note("create_run", tasks, plan_path, tuple(only), limits, from_run)
        return RUN

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        self._note("drive", run, workers, apply, limits, resumed)
        for one in numbered(self.story)[self.told_before :]:
            self._told.append(one)
            await asyncio.sleep(0)
        if self.hangs:
            await self._hang()
        return self.ending

    async def _hang(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            while not self.rests:
                await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())})
            paused = event(EventKind.RUN_FINISHED, outcome="paused", reason="interrupted")
            self._told.append(replace(paused, seq=len(self._told) + 1))
            raise

    async def find_run(self, run: str | None, *, resumable: bool = False) -> str:
        self._note("find_run", run, resumable)
        if run is not None and not RUN.startswith(run):
            raise UsageError(f"There is no run {run!r}.", next_step=f"Nearest: {RUN}.")
        return RUN

    async def handoff(self, run: str) -> str:
        return f"next: mimir resume {run}"

    async def events(self, run: str, after: int) -> Sequence[Event]:
        happened = self._told or numbered(self.story)[: self.told_before]
        return [one for one in happened if one.seq > after]

    async def status(self, run: str) -> Mapping[str, object]:
        self._note("status", run)
        counts = {"executed": 2, "judged": 1, "unverified": 0, "failed": 0}
        task = {"id": "task-0", "title": "Look", "status": "completed", "attempts": 1}
        task |= {"score": 100.0, "criteria": counts, "tool_calls": 3, "limit": 12}
        shape = {"run": run, "status": "completed", "outcome": "completed", "tasks": [task]}
        return {**shape, **self.state}

    async def export(self, run: str, form: str, write: Callable[[str], object]) -> None:
        self._note("export", run, form)
        for line in ("first", "second"):
            write(line)

    async def cancel(self, run: str) -> None:
        self._note("cancel", run)

    async def apply(
        self,
        run: str,
        *,
        commit: bool,
        completed: bool = False,
        markers: bool = False,
        is_confirmed: bool = False,
    ) -> RunResult:
        self._note("apply", run, commit)
        return self.ending

    async def verify(self, run: str, seal: str) -> FakeVerified:
        self._note("verify", run, seal)
        return self.verified

    async def learned_estimates(self, roles: Collection[str]) -> Mapping[str, LearnedEstimate]:
        self._note("learned", tuple(roles))
        return self.known

    async def forecast(self, plan: Plan, *, workers: int) -> RunForecast:
        self._note("forecast", tuple(task.id for task in plan.tasks), workers)
        return forecast_run([task.worker_role for task in plan.tasks], {})

    async def plan_size(self, plan: Plan) -> tuple[int, int, int]:
        self._note("plan_size", tuple(task.id for task in plan.tasks))
        return len(plan.tasks), 236, 1_200_000

    def calls(self, verb: str) -> list[tuple[object, ...]]:
        """Return the arguments of the calls of a verb."""
        return [call[1:] for call in self.asked if call[0] == verb]


def module(mimir: FakeMimir) -> ModuleType:
    """Return a module that opens `mimir`."""

    @asynccontextmanager
    async def opened(
        project: Path,
        loaded: LoadedSettings,
        *,
        create: bool = True,
        say: object = None,
        record: Path | None = None,
        replay: Path | None = None,
    ) -> AsyncGenerator[FakeMimir]:
        mimir.opened.append((project, loaded, create))
        if "open" in mimir.raises:
            raise mimir.raises["open"]
        yield mimir

    async def migrate(
        project: Path,
        loaded: LoadedSettings,
        source: str,
        target: str,
        *,
        run: str = "",
        say: object = None,
    ) -> FakeCopied:
        mimir._note("migrate", source, target, run)
        return FakeCopied()

    fake = ModuleType("mimir.bootstrap.app")
    fake.__dict__["open"] = opened
    fake.__dict__["migrate"] = migrate
    return fake


@dataclass(frozen=True, slots=True)
class FakePlace:
    """A project whose status is that of `mimir`."""

    mimir: FakeMimir
    directory: Path

    def read_status(self, reads: object, run: str | None) -> Mapping[str, object]:
        """Return the status of the fake."""

        async def job() -> Mapping[str, object]:
            async with module(self.mimir).open(
                self.directory, None, create=False, say=None
            ) as opened:
                return await opened.status(await opened.find_run(run))

        return asyncio.run(job())


def local_store(mimir: FakeMimir) -> ModuleType:
    """Return a module whose store holds nothing but a place."""

    def look(
        project: Path, uri: str, work: Callable[[object, object], object], *, say: object
    ) -> object:
        return work(None, FakePlace(mimir, project))

    fake = ModuleType("mimir.bootstrap.local_store")
    fake.__dict__["find_uri"] = str
    fake.__dict__["look"] = look
    return fake


def doctor(mimir: FakeMimir) -> ModuleType:
    """Return a module that inspects a machine on which `mimir` works as described."""

    async def examine(project: Path, loaded: object, *, ask: bool) -> Sequence[FakeDiagnosis]:
        mimir._note("doctor", ask)
        return mimir.diagnoses

    fake = ModuleType("mimir.bootstrap.doctor")
    fake.__dict__["examine"] = examine
    return fake


def install(mimir: FakeMimir) -> None:
    """Put `mimir` in the place of the real one, in this process."""
    for name, fake in fakes(mimir).items():
        sys.modules[f"mimir.bootstrap.{name}"] = fake
        setattr(mimir_bootstrap, name, fake)


def fakes(mimir: FakeMimir) -> Mapping[str, ModuleType]:
    """Return the modules of `mimir.bootstrap` that the commands import, by name."""
    return {
        "app": module(mimir),
        "local_store": local_store(mimir),
        "doctor": doctor(mimir),
    }
