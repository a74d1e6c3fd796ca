"""The site of a killed and resumed run: a project, a model behind HTTP, a store; and the observations from outside.

The truth is counted outside the engine: the model server's log of requests, and a file that gets a line whenever a tool with an
effect really runs.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mimir.bootstrap.clock import SystemClock
from mimir.domain.task_states import EXECUTING
from mimir.store.neo4j.address import parse
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.schema import NodeLabel
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.crash.crash_points import Point
from tests.support.crash.process_forge import Child, Forge, Order
from tests.support.invariants import listing
from tests.support.run_facts import Facts, load
from tests.support.script_server import PlayServer
from tests.support.stored_rows import task_rows
from tests.support.stores import opened

T = TypeVar("T")
KEY = "sk-test-0123456789"
WALK = Path(__file__).parents[1] / "twelve_tasks"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A plan or an invocation, a play and the words that run it."""

    plan: str
    play: str | Mapping[str, object]
    words: tuple[str, ...] = ()
    workers: int = 4
    invokes: tuple[str, ...] = ()
    """Words of an invocation. Empty: the plan is executed."""

    @property
    def start(self) -> list[str]:
        """The first command."""
        if self.invokes:
            return ["invoke", *self.invokes, "--json", *self.words]
        given = ["--yes", "--json", "--workers", str(self.workers)]
        return ["execute", "plan.md", *given, *self.words]

    @property
    def resume(self) -> list[str]:
        """Every later one."""
        return ["resume", "--json", "--workers", str(self.workers)]


def from_walk(*words: str) -> Scene:
    """Read a scene of `tests/support/twelve_tasks`."""
    plan = (WALK / "plan.md").read_text(encoding="utf-8")
    play = (WALK / "script.yaml").read_text(encoding="utf-8")
    return Scene(plan=plan, play=play, words=words)


TWELVE = from_walk()
"""Diamonds, a fan, a task that passes when it is tried again, one that never does."""
APPLIED = from_walk("--only", "d")
"""The diamond alone: it ends well, and is applied."""


@dataclass(frozen=True, kw_only=True)
class Death:
    """The content of the store after the death of the process."""

    in_flight: int
    """Tasks that were worked on, and lanes of no task that waited for an answer."""
    models: Counter[str]
    """Lane → its calls of the model without an outcome."""
    tools: Counter[str]
    deaths: int
    """The most deaths in a row of any task, this one not counted."""


NOBODY = Death(in_flight=0, models=Counter(), tools=Counter(), deaths=0)


@dataclass
class Ground:
    """One run from its beginning to its end, through every death."""

    root: Path
    scene: Scene
    forge: Forge
    server: PlayServer
    uri: str = ""
    """Of the store; empty: the project's own file."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    deaths: list[Death] = field(default_factory=list[Death])
    before: Mapping[str, str] = field(default_factory=dict[str, str])
    run: str = ""

    @property
    def project(self) -> Path:
        """Where mimir works."""
        return self.root / "project"

    def path(self, name: str) -> Path:
        """Return a file beside the project."""
        return self.root / name

    def start(
        self,
        words: Sequence[str] = (),
        *,
        die_at: Point | None = None,
        trace: Path | None = None,
        watched: Path | None = None,
    ) -> Child:
        """Start a process; without arguments it starts the run, or resumes an existing one."""
        words = words or (self.scene.resume if self.find_run() else self.scene.start)
        number = len(list(self.root.glob("err-*")))
        order = Order(
            words=words,
            cwd=self.project,
            env=self.env(),
            out=self.path(f"out-{number}"),
            err=self.path(f"err-{number}"),
            die_at=die_at,
            trace=trace,
            watched=watched,
            effects=self.path("effects"),
            refused=self.path("refused"),
        )
        order.err.touch()
        return self.forge.start(order)

    def env(self) -> dict[str, str]:
        """Return the environment of the user."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "MIMIR_"))}
        return {
            **kept,
            "HOME": str(self.root),
            "OPENAI_BASE_URL": self.server.url,
            "OPENAI_API_KEY": KEY,
            "MIMIR_LLM__LANE_HEADER": "true",
            **({"MIMIR_STORE": self.uri} if self.uri else {}),
            **self.settings,
        }

    def store(self) -> GraphStore:
        """Return the run's store, not open."""
        if not self.uri:
            return SqliteStore(self.project / ".mimir" / "mimir.db", SystemClock())
        from mimir.store.neo4j.neo4j_store import Neo4jStore

        return Neo4jStore(parse(self.uri), SystemClock(), door=secrets.token_hex(8))

    def look(self, question: Callable[[ReadOps], T]) -> T:
        """Ask the store from outside."""

        async def asked() -> T:
            async with opened(self.store()) as store:
                return await store.read(question)

        return asyncio.run(asked())

    def find_run(self) -> str:
        """Return the run's id; empty: there is none yet."""
        if not self.run and (self.uri or (self.project / ".mimir" / "mimir.db").exists()):
            kind = "agent" if self.scene.invokes else "execute"
            rows = self.look(lambda reads: reads.find(NodeLabel.RUN, {"kind": kind}))
            self.run = str(rows[0]["id"]) if rows else ""
        return self.run

    def died(self) -> Death:
        """Save the content of the store at a death."""
        death = self.look(lambda reads: _death(reads, self.run)) if self.find_run() else NOBODY
        self.deaths.append(death)
        return death

    def facts(self) -> Facts:
        """Read the run as it is."""
        return load(self.project, self.find_run(), self.store())

    def requests(self) -> list[dict[str, str]]:
        """Return the requests to the model."""
        log = self.path("requests")
        return [json.loads(line) for line in _lines(log)]

    def effects(self) -> list[str]:
        """Return each time that a tool with an effect ran: `lane tool arguments`."""
        return _lines(self.path("effects"))

    def events(self) -> Iterator[Mapping[str, object]]:
        """Return the reports of all processes, in their order."""
        for number in range(len(list(self.root.glob("out-*")))):
            for line in _lines(self.path(f"out-{number}")):
                with contextlib.suppress(json.JSONDecodeError):  # cut by a kill
                    yield json.loads(line)


@contextlib.contextmanager
def prepared(
    root: Path,
    scene: Scene,
    forge: Forge,
    uri: str = "",
    settings: Mapping[str, str] | None = None,
) -> Generator[Ground]:
    """Make the project and its model; remove all of it at the end."""
    shutil.rmtree(root, ignore_errors=True)
    project = root / "project"
    project.mkdir(parents=True)
    (project / "plan.md").write_text(scene.plan, encoding="utf-8")
    try:
        with PlayServer(scene.play, log=root / "requests") as server:
            ground = Ground(root, scene, forge, server, uri, settings or {})
            ground.before = listing(project)
            yield ground
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _death(reads: ReadOps, run: str) -> Death:
    tasks = task_rows(reads, run)
    live = {str(row["taskId"]) for row in tasks if row["status"] in EXECUTING}
    calls = [row for row in reads.find(NodeLabel.CALL, {"runId": run}) if not row.get("done")]
    models = Counter(_lane(row["lane"]) for row in calls if row["kind"] == "model")
    others = {lane for lane in models if lane.partition("/")[0] not in live}
    return Death(
        in_flight=len(live) + len(others),
        models=models,
        tools=Counter(_lane(row["lane"]) for row in calls if row["kind"] == "tool"),
        deaths=max((int(str(row.get("deaths") or 0)) for row in tasks), default=0),
    )


def _lane(lane: object) -> str:
    return str(lane).partition("/")[2]
