"""A finished run as its store and its hidden git history hold it: plain values, so that a test can look, or doctor a copy."""

import asyncio
import contextlib
import copy
import os
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from mimir.bootstrap.clock import SystemClock
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import CheckOutcome
from mimir.domain.ids import attempt_id, lane_id
from mimir.domain.plan import Plan
from mimir.domain.verdict import Verdict
from mimir.store.operations import runs
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.records.record_codec import PackedJson
from mimir.store.schema import NodeLabel, unpack
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.stored_rows import run_row
from tests.support.stores import opened
from tests.support.transcripts import encode_delta

Nodes = dict[str, list[dict[str, Any]]]
"""Label → its nodes, in their order; the request of a call is whole."""


class Git:
    """Reads the hidden repository of a project; nothing of the engine in between."""

    def __init__(self, directory: Path, objects: Path | None = None) -> None:
        self.directory = directory
        self._environment = dict(os.environ)
        if objects is not None:
            # Quoted: a name may hold a colon, which parts directories.
            text = str(objects).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            self._environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{text}"'

    def output(self, *arguments: str) -> str:
        """Return the output of git."""
        done = subprocess.run(
            ["git", f"--git-dir={self.directory}", *arguments],
            stdin=subprocess.DEVNULL,
            env=self._environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, f"git {arguments}: {done.stderr.decode(errors='replace')}"
        return done.stdout.decode("utf-8", "replace")

    def tree(self, commit: str) -> str:
        """Return a commit's tree."""
        return self.output("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def line(self, head: str, base: str) -> list[str]:
        """Return the commits of a line by first parents, oldest first, without its base."""
        return self.output("rev-list", "--first-parent", "--reverse", f"{base}..{head}").split()

    def parents(self, commit: str) -> list[str]:
        """Return a commit's parents, the line's first."""
        return self.output("rev-parse", f"{commit}^@").split()

    def files(self, source: str) -> dict[str, str]:
        """Return path → mode and blob of a commit or tree."""
        rows = [r for r in self.output("ls-tree", "-r", "-z", source).split("\0") if r]
        return {path: facts for facts, path in (row.split("\t", 1) for row in rows)}

    def changed(self, a: str, b: str) -> set[str]:
        """Return the paths that differ."""
        before, after = self.files(a), self.files(b)
        return {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}

    def text(self, source: str, path: str) -> str:
        """Return a file's text in a commit or tree."""
        return self.output("cat-file", "blob", f"{source}:{path}")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One run."""

    project: Path
    run: str
    row: dict[str, Any]
    """The run's own node."""
    nodes: Nodes
    events: list[Event]
    plan: Plan
    git: Git

    def doctored(self, change: Callable[["Facts"], "Facts | None"]) -> "Facts":
        """Return a copy that `change` has had its way with; it may change its argument, or return another."""
        twin = replace(
            self,
            row=dict(self.row),
            nodes=copy.deepcopy(self.nodes),
            events=list(self.events),
        )
        return change(twin) or twin

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """Task → its row."""
        return {str(row["taskId"]): row for row in self.nodes["Task"]}

    @property
    def statuses(self) -> dict[str, str]:
        """Task → its status."""
        return {id: str(row["status"]) for id, row in self.tasks.items()}

    def attempts(self, task: str) -> list[dict[str, Any]]:
        """Return the attempts of a task, in order."""
        return [row for row in self.nodes["Attempt"] if row["taskId"] == task]

    def attempt(self, task: str, number: int) -> dict[str, Any]:
        """Return one attempt."""
        return next(row for row in self.attempts(task) if row["attemptNumber"] == number)

    def work(self, task: str, number: int = 1) -> Deliverable:
        """Return the deliverable of an attempt."""
        return PackedJson(str(self.attempt(task, number)["workJson"])).decode(Deliverable)

    def outcomes(self, task: str, number: int = 1) -> dict[str, CheckOutcome]:
        """Return the outcomes of an attempt's checks, by check."""
        text = str(self.attempt(task, number)["checksJson"])
        return {one.check: one for one in PackedJson(text).decode(tuple[CheckOutcome, ...])}

    def judgement(self, task: str, number: int = 1) -> Verdict:
        """Return the last ruling on an attempt."""
        return PackedJson(str(self.attempt(task, number)["judgementJson"])).decode(Verdict)

    def records(self, chain: str) -> list[dict[str, Any]]:
        """Return the sealed bodies of a chain, in order, each with its `kind`."""
        rows = [row for row in self.nodes["Evidence"] if row["chain"] == chain]
        rows.sort(key=lambda row: row["seq"])
        return [
            {**cast("dict[str, Any]", unpack(str(row["body"]))), "record": row["kind"]}
            for row in rows
        ]

    def chain(self, task: str, number: int = 1) -> str:
        """Name the chain of an attempt."""
        return attempt_id(self.run, task, number)

    def calls(self, task: str, number: int = 1, role: str = "worker") -> list[dict[str, Any]]:
        """Return the calls of a lane, in order."""
        lane = lane_id(self.run, task, number, role)
        rows = [row for row in self.nodes["Call"] if row["lane"] == lane]
        return sorted(rows, key=lambda row: row["seq"])

    def tool_calls(self, task: str, number: int = 1, role: str = "worker") -> list[dict[str, Any]]:
        """Return the tool calls of a lane."""
        return [row for row in self.calls(task, number, role) if row["kind"] == "tool"]

    def lanes(self, task: str, number: int = 1) -> list[str]:
        """Return the roles that spoke in an attempt, sorted."""
        start = f"{attempt_id(self.run, task, number)}/"
        lanes = {str(row["lane"]) for row in self.nodes["Call"]}
        return sorted(lane.removeprefix(start) for lane in lanes if lane.startswith(start))

    def events_of_kind(self, *kinds: EventKind, task: str | None = None) -> list[Event]:
        """Return the events of these kinds, of one task if it is named."""
        return [e for e in self.events if e.kind in kinds and task in (None, e.task)]

    @property
    def branches(self) -> dict[str, str]:
        """Return branch → commit of mimir's branches in a user's repository."""
        said = Git(self.project / ".git").output(
            "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/mimir"
        )
        return dict(line.split(" ") for line in said.splitlines())

    @cached_property
    def files(self) -> dict[str, str]:
        """The text of each file on the run's line, as it ended."""
        head = str(self.row["headTree"])
        return {path: self.git.text(head, path) for path in self.git.files(head)}


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Knowledge of an observer outside the engine; each part may be left out."""

    secrets: Sequence[str] = ()
    """Texts that may be in no output."""
    output: Sequence[str] = ()
    """The printed output."""
    before: Mapping[str, str] | None = None
    """The project's files before the run, as `listing` gives them."""
    requests: Sequence[str] = ()
    """The lane of each model call that arrived, without the run's id: `task/attempt/role`."""
    in_flight: Sequence[int] = ()
    """How many tasks were in flight at each crash."""


def load(project: Path, run: str, store: GraphStore | None = None) -> Facts:
    """Read a run; for a test that has no loop of its own running."""
    return asyncio.run(gather(project, run, store))


async def gather(project: Path, run: str, store: GraphStore | None = None) -> Facts:
    """Read a run, of the project's own store by default. No engine may have it open for writing."""
    async with opened(store) if store else store_of(project) as store:
        return await store.read(lambda reads: _read(reads, project, run))


@contextlib.asynccontextmanager
async def store_of(project: Path) -> AsyncGenerator[GraphStore]:
    """Open a project's store as another process would, by the same clock."""
    async with opened(SqliteStore(project / ".mimir" / "mimir.db", SystemClock())) as store:
        yield store


def _read(reads: ReadOps, project: Path, run: str) -> Facts:
    row = run_row(reads, run)
    nodes = {
        label.value: _plain(reads.find(label, {"runId": run}, order=("seq",)))
        for label in NodeLabel
    }
    nodes["Call"] = [{**one, "deltaJson": encode_delta(reads, one)} for one in nodes["Call"]]
    return Facts(
        project=project,
        run=run,
        row=dict(row),
        nodes=nodes,
        events=runs.events(reads, run),
        # A planning run has none yet.
        plan=runs.read_plan(str(row["planJson"]))
        if "planJson" in row
        else Plan(title="", tasks=()),
        git=Git(project / ".mimir" / "work" / "history.git", _objects(project)),
    )


def _objects(project: Path) -> Path | None:
    """Return the object directory of the user's git; None: there is no git."""
    asked = subprocess.run(
        ["git", "-C", str(project), "rev-parse", "--path-format=absolute", "--git-path", "objects"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = os.fsdecode(asked.stdout).removesuffix("\n")
    return Path(said) if asked.returncode == 0 and said else None


def _plain(rows: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows]
