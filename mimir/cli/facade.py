"""What the commands want of `mimir.bootstrap.app`, which is imported inside command bodies only: it brings the heavy libraries."""

import importlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from mimir.domain.estimates import LearnedEstimate
from mimir.domain.event import Event
from mimir.domain.plan import Plan
from mimir.domain.run import Apply, RunBudget, RunResult

if TYPE_CHECKING:
    from mimir.planning.format.diagnostics import PlanFinding
    from mimir.settings import LoadedSettings

Form = Literal["cypher", "jsonl", "mermaid"]
"""Of an export."""


class Planned(Protocol):
    """What planning came to."""

    @property
    def run(self) -> str:
        """Id of the planning run."""
        ...

    @property
    def path(self) -> str:
        """Of the plan, relative to the project."""
        ...

    @property
    def plan(self) -> Plan:
        """As it was saved."""
        ...

    @property
    def findings(self) -> "tuple[PlanFinding, ...]":
        """Everything that is wrong with it."""
        ...

    @property
    def exit_code(self) -> int:
        """0, or 65 if it cannot run."""
        ...


class Verified(Protocol):
    """What recomputing all seals of a run showed."""

    @property
    def run(self) -> str:
        """Its id."""
        ...

    @property
    def ok(self) -> bool:
        """True if every record is the one that was sealed."""
        ...

    @property
    def records(self) -> int:
        """How many were recomputed."""
        ...

    @property
    def seal(self) -> str:
        """Of the run; empty if it has none yet."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Each names its record."""
        ...


class Diagnosis(Protocol):
    """One thing that mimir needs, looked at."""

    @property
    def what(self) -> str:
        """Its name."""
        ...

    @property
    def ok(self) -> bool:
        """True if it works."""
        ...

    @property
    def detail(self) -> str:
        """What was found."""
        ...

    @property
    def fix(self) -> str:
        """What to do; empty if there is nothing to do."""
        ...


class Difference(Protocol):
    """One place where a replay is not as recorded."""

    @property
    def where(self) -> str:
        """Lane and call, event, or line."""
        ...

    @property
    def what(self) -> str:
        """What was recorded there, and what is there now."""
        ...


class Replayed(Protocol):
    """One run that was replayed."""

    @property
    def run(self) -> str:
        """Its id."""
        ...

    @property
    def events(self) -> int:
        """How many came about again."""
        ...

    @property
    def calls(self) -> int:
        """Outcomes of models and tools that were served."""
        ...

    @property
    def checks(self) -> int:
        """Runs of checks that were served."""
        ...

    @property
    def status(self) -> str:
        """Of the run, at its end."""
        ...

    @property
    def report(self) -> str:
        """Its text."""
        ...

    @property
    def plan(self) -> str:
        """Its text."""
        ...

    @property
    def verdict_rows(self) -> str:
        """JSON text."""
        ...

    @property
    def evidence_rows(self) -> str:
        """JSON text."""
        ...

    @property
    def verdicts(self) -> int:
        """How many rulings there are."""
        ...

    @property
    def evidence(self) -> int:
        """How many sealed records there are."""
        ...

    @property
    def seal(self) -> str:
        """Of the run; empty: it has none."""
        ...

    @property
    def differences(self) -> "Sequence[Difference]":
        """Where it is not as recorded; empty: the same bytes."""
        ...


class Copied(Protocol):
    """What a migration came to."""

    @property
    def runs(self) -> tuple[str, ...]:
        """Those that are new in the target."""
        ...

    @property
    def known(self) -> tuple[str, ...]:
        """Those that were there already, equal."""
        ...

    @property
    def nodes(self) -> int:
        """How many were compared."""
        ...

    @property
    def edges(self) -> int:
        """How many were compared."""
        ...


class Mimir(Protocol):
    """One open project. Only what each verb adds to its name is said here; `mimir.bootstrap.app` has the contracts."""

    @property
    def store_uri(self) -> str:
        """Where the store is; no password in it."""
        ...

    async def plan(
        self,
        request: str,
        *,
        ecko: bool,
        output: str | None,
        model: str,
        limits: RunBudget,
    ) -> Planned:
        """Turn a request into a saved plan."""
        ...

    async def create_run(
        self,
        plan: Plan,
        plan_path: str,
        *,
        only: Sequence[str],
        limits: RunBudget,
        from_run: str = "",
    ) -> str:
        """Make a run; its id."""
        ...

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        """Serve a run; cancelled, it pauses the run and passes the cancellation on."""
        ...

    async def help(self, run: str, *, workers: int) -> RunResult:
        """Serve a run that is under way; cancelled, it leaves the run and passes the cancellation on."""
        ...

    async def find_work(self, run: str | None) -> str:
        """Return the id of the run to help; None: the newest one that is being worked on."""
        ...

    async def workers(self, run: str) -> Mapping[str, object]:
        """Return `workers`, `locks` and `metrics` of a run, as `status --workers --json` shows them."""
        ...

    async def find_run(self, run: str | None, *, resumable: bool = False) -> str:
        """Return the id of a run named whole or by its beginning; None: the latest."""
        ...

    async def events(self, run: str, after: int) -> Sequence[Event]:
        """Return what happened behind event number `after`."""
        ...

    async def status(self, run: str) -> Mapping[str, object]:
        """Return the JSON shape of `status --json`, with more for people."""
        ...

    async def report(self, run: str) -> tuple[str, str]:
        """Return the report's path, relative to the project, and its text."""
        ...

    async def report_json(self, run: str) -> Mapping[str, object]:
        """Return the report's JSON twin."""
        ...

    async def export(self, run: str, form: Form, write: Callable[[str], object]) -> None:
        """Write a run line by line; an empty `run`: the whole store."""
        ...

    async def cancel(self, run: str) -> None:
        """End a run and all its tasks that have not ended."""
        ...

    async def apply(self, run: str, *, commit: bool) -> RunResult:
        """Bring a run's result into the person's directory."""
        ...

    async def verify(self, run: str, seal: str) -> Verified:
        """Recompute all seals; `seal`, if given, must be the run's."""
        ...

    async def doctor(self) -> Sequence[Diagnosis]:
        """Look at all that mimir needs."""
        ...

    async def learned_estimates(self, roles: Collection[str]) -> Mapping[str, LearnedEstimate]:
        """Return what tasks of these worker roles took in finished runs."""
        ...

    async def plan_size(self, plan: Plan) -> tuple[int, int, int]:
        """Return the number of tasks, and bounds of calls and of tokens."""
        ...


class App(Protocol):
    """The module `mimir.bootstrap.app`."""

    def open(
        self,
        project: Path,
        loaded: "LoadedSettings",
        *,
        create: bool = True,
        say: Callable[[str], None] = ...,
        record: Path = ...,
        replay: Path = ...,
    ) -> AbstractAsyncContextManager[Mimir]:
        """Open a project; `create=False` makes nothing and refuses where nothing is. `say` is told that the store is lost or back."""
        ...

    async def replay(
        self, project: Path, loaded: "LoadedSettings", what: str
    ) -> "Sequence[Replayed]":
        """Replay a recording or a run from its record alone; nothing is executed."""
        ...

    async def migrate(
        self,
        project: Path,
        loaded: "LoadedSettings",
        source: str,
        target: str,
        *,
        run: str = "",
        say: Callable[[str], None] = ...,
    ) -> Copied:
        """Copy a run, or a whole store, into another store."""
        ...


class Glance(Protocol):
    """What the commands want of `mimir.bootstrap.quick_status`."""

    def status(
        self, project: Path, loaded: "LoadedSettings", run: str | None, say: Callable[[str], None]
    ) -> Awaitable[Mapping[str, object]]:
        """Return where a run stands, without opening more than the store."""
        ...


def glance() -> Glance:
    """Import `mimir.bootstrap.quick_status`, which is quick."""
    return cast("Glance", importlib.import_module("mimir.bootstrap.quick_status"))


def app() -> App:
    """Import `mimir.bootstrap.app`."""
    return cast("App", importlib.import_module("mimir.bootstrap.app"))
