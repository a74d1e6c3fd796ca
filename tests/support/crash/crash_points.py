"""Every crossing of the engine's boundaries, counted by wrappers of this module alone; at a named one the process dies.

A boundary: a commit of the store, a call of the model, a call of a tool, a git command, a command in the sandbox, a file that apply
writes, a look at the clock. `Fuse` is lit in a process that was forked for it, before the engine runs.
"""

# Crash points wrap private functions at the boundaries of the engine.
# pyright: reportPrivateUsage=false

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, ParamSpec, Self, TypeVar
from urllib.parse import unquote

from tests.support.crash.durable_state import DurableState

P = ParamSpec("P")
T = TypeVar("T")
Side = Literal["before", "after"]
DIED = 137
"""The exit code of a process that ended itself as SIGKILL would have."""
READING_GIT = frozenset(
    {
        "cat-file", "check-ignore", "diff", "diff-files", "diff-index", "diff-tree", "for-each-ref", "grep", "log", "ls-files",
        "ls-tree", "merge-base", "rev-list", "rev-parse", "show", "show-ref", "status", "version",
    }
)  # fmt: skip
"""Commands that change nothing: dying before and after them is the same."""
WITHOUT_EFFECT = frozenset({"clock", "question"})
"""Boundaries that change nothing outside the process: a commit writes a question."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A place to die at: the n-th time that a boundary is crossed, before it or after it."""

    kind: str
    label: str
    nth: int
    side: Side

    def __str__(self) -> str:
        """Write it in one word: `git:commit-tree:3:after`."""
        return f"{self.kind}:{self.label}:{self.nth}:{self.side}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse the form that `str` writes."""
        kind, rest = text.split(":", 1)
        label, nth, side = rest.rsplit(":", 2)
        assert side in ("before", "after")
        return cls(kind, label, int(nth), side)


class Fuse:
    """Counts crossings, and ends the process at one of them."""

    def __init__(
        self, at: Point | None = None, trace: Path | None = None, state: DurableState | None = None
    ) -> None:
        """Count; `trace` gets one line a crossing, with its `state`; at `at` the process dies."""
        self._at = at
        self._trace = trace
        self._state = state
        self._seen: Counter[tuple[str, str, Side]] = Counter()
        self._guard = threading.Lock()

    def cross(self, kind: str, label: str, side: Side) -> None:
        """Report a crossing."""
        if side == "after" and kind == "git" and label in READING_GIT:
            return
        with self._guard:
            self._seen[kind, label, side] += 1
            point = Point(kind, label, self._seen[kind, label, side], side)
            if self._trace:
                with self._trace.open("a", encoding="utf-8") as out:
                    out.write(f"{point}\t{self._look(point)}\n")
            if point == self._at:
                os._exit(DIED)

    def _look(self, point: Point) -> str:
        """Return the durable state at a point; empty: no caller needs it."""
        if self._state is None:
            return ""
        if point.kind in WITHOUT_EFFECT or (point.kind == "git" and point.label in READING_GIT):
            return self._state.look()
        look = self._state.before if point.side == "before" else self._state.after
        return look(point.kind, point.label)

    def around(
        self, kind: str, call: Callable[P, Awaitable[T]], label: Callable[P, str]
    ) -> Callable[P, Awaitable[T]]:
        """Return `call` with its crossings counted."""

        async def crossing(*given: P.args, **named: P.kwargs) -> T:
            name = label(*given, **named)
            self.cross(kind, name, "before")
            made = await call(*given, **named)
            self.cross(kind, name, "after")
            return made

        return crossing


def points(trace: Path) -> list[Point]:
    """Return every point that a traced run came by, each once."""
    return [point for group in groups(trace) for point in group]


def groups(trace: Path) -> list[list[Point]]:
    """Return the points of a traced run, those of one durable state together."""
    lines = [line.split("\t") for line in trace.read_text(encoding="utf-8").splitlines()]
    return [
        [Point.read(text) for text, _ in group]
        for _, group in groupby(lines, key=lambda line: line[1])
    ]


def one_of_each(found: Iterable[Sequence[Point]]) -> list[Point]:
    """Choose a point of each group; the number of a look at the clock differs from run to run, so it comes last."""
    return [min(group, key=lambda point: point.kind == "clock") for group in found]


def light(fuse: Fuse, effects: Path | None) -> None:
    """Wrap every boundary in this process; `effects` gets one line for each time that a tool with an effect really runs."""
    _questions(fuse)
    _store(fuse)
    _model(fuse)
    _tools(fuse, effects)
    _programs(fuse, effects)
    _git(fuse)
    _sandbox(fuse)
    _apply(fuse)
    _clock(fuse)


def _questions(fuse: Fuse) -> None:
    """Around the writes of a transaction for a question or an answer; `committed` follows their commit."""
    from mimir.orchestrator.questions import answering
    from mimir.store.sqlite.sqlite_store import SqliteStore
    from mimir.store.transcripts import waiting_calls

    writes: tuple[tuple[Any, str, str], ...] = (
        (waiting_calls, "write_question", "asked"),
        (answering, "close_question", "answered"),
    )
    start = SqliteStore.__init__
    written: list[str] = []

    def wrap(module: Any, name: str, label: str) -> None:
        write = getattr(module, name)

        def crossing(*given: Any, **named: Any) -> Any:
            fuse.cross("question", label, "before")
            made = write(*given, **named)
            fuse.cross("question", label, "after")
            written.append(label)
            return made

        setattr(module, name, crossing)

    def made(self: SqliteStore, *given: Any, faults: Any = None, **more: Any) -> None:
        def fault(boundary: str) -> None:
            if boundary != "before-commit" and written:
                fuse.cross("question", f"{written.pop()}-committed", "after")
            if faults is not None:
                faults(boundary)

        start(self, *given, **more, faults=fault)

    for module, name, label in writes:
        wrap(module, name, label)
    SqliteStore.__init__ = made  # type: ignore[method-assign]


def _store(fuse: Fuse) -> None:
    from neo4j import Session

    from mimir.store.neo4j.transactions import WriteTransaction
    from mimir.store.sqlite.sqlite_store import SqliteStore

    start = SqliteStore.__init__

    def made(self: SqliteStore, *given: object, **more: object) -> None:
        def fault(boundary: str) -> None:
            fuse.cross("store", "commit", "before" if boundary == "before-commit" else "after")

        start(self, *given, **more, faults=fault)  # type: ignore[arg-type]

    SqliteStore.__init__ = made  # type: ignore[method-assign]
    under_lock = WriteTransaction[Any]._under_lock
    execute: Callable[..., object] = Session.execute_write
    sent = threading.local()

    def locked(self: object, transaction: object) -> None:
        under_lock(self, transaction)  # type: ignore[arg-type]
        fuse.cross("store", "commit", "before")
        sent.commit = True

    def executed(self: object, *given: object, **named: object) -> object:
        sent.commit = False
        value = execute(self, *given, **named)
        if sent.commit:
            fuse.cross("store", "commit", "after")
        return value

    WriteTransaction._under_lock = locked  # type: ignore[method-assign,assignment]
    Session.execute_write = executed  # type: ignore[method-assign,assignment]


def _model(fuse: Fuse) -> None:
    from mimir.llm.openai import endpoint

    def lane(self: endpoint.TranscriptModel, _: object) -> str:
        header = next(iter(self.headers.values()), "")
        return unquote(header).partition("/")[2]

    endpoint.TranscriptModel.ask = fuse.around("model", endpoint.TranscriptModel.ask, lane)  # type: ignore[method-assign]


def _tools(fuse: Fuse, effects: Path | None) -> None:
    from mimir.tools import gateway

    run = gateway.Gateway._execute

    async def noted(self: object, call: object, context: object) -> object:
        if effects is not None and call.name not in READING_TOOLS:  # type: ignore[attr-defined]
            digest = hashlib.sha256(call.arguments.encode()).hexdigest()[:12]  # type: ignore[attr-defined]
            with effects.open("a", encoding="utf-8") as out:
                out.write(f"{_lane(context)} {call.name} {digest}\n")  # type: ignore[attr-defined]
        return await run(self, call, context)  # type: ignore[arg-type]

    def label(_: object, call: object, context: object) -> str:
        return f"{_lane(context)}/{call.name}"  # type: ignore[attr-defined]

    gateway.Gateway._execute = fuse.around("tool", noted, label)  # type: ignore[method-assign,assignment]


def _programs(fuse: Fuse, effects: Path | None) -> None:
    from mimir.bootstrap.agents.programs import SandboxedPrograms

    launch = SandboxedPrograms.launch

    def lane(workspace: Path) -> str:
        return f"{workspace.parent.name}/{workspace.name.partition('.')[0]}/worker"

    async def noted(self: object, call: object, workspace: Path, commit: str) -> object:
        if effects is not None:
            with effects.open("a", encoding="utf-8") as out:
                out.write(f"{lane(workspace)} program -\n")
        return await launch(self, call, workspace, commit)  # type: ignore[arg-type]

    def label(_: object, __: object, workspace: Path, ___: str) -> str:
        return lane(workspace)

    SandboxedPrograms.launch = fuse.around("program", noted, label)  # type: ignore[method-assign,assignment]


READING_TOOLS = frozenset({"read_file", "list_files", "grep", "read_artifact"})


def _lane(context: object) -> str:
    return f"{context.task}/{context.attempt}/{context.role}"  # type: ignore[attr-defined]


def _git(fuse: Fuse) -> None:
    from mimir.workspace.git.git_command import GitCommand

    GitCommand.run = fuse.around("git", GitCommand.run, lambda _, *words, **__: _verb(words))  # type: ignore[method-assign]
    GitCommand.pipe = fuse.around("git", GitCommand.pipe, lambda _, words, *__: _verb(words))  # type: ignore[method-assign]


def _verb(words: Sequence[str]) -> str:
    """Return git's command without the options before it."""
    at = 0
    while words[at].startswith("-"):
        at += 2 if words[at] in ("-c", "-C") else 1
    return words[at]


def _sandbox(fuse: Fuse) -> None:
    from mimir.workspace.sandbox.sandbox import Sandbox

    def label(_: Sandbox, argv: object, **__: object) -> str:
        return " ".join(argv).replace(":", " ")[:40]  # type: ignore[call-overload]

    Sandbox.run = fuse.around("sandbox", Sandbox.run, label)  # type: ignore[method-assign,assignment]


def _apply(fuse: Fuse) -> None:
    from mimir.workspace.user_tree import user_file

    make = user_file.make_change

    def crossing(*given: object, **more: object) -> object:
        fuse.cross("apply", "file", "before")
        done = make(*given, **more)  # type: ignore[arg-type]
        fuse.cross("apply", "file", "after")
        return done

    user_file.make_change = crossing  # type: ignore[assignment]


def _clock(fuse: Fuse) -> None:
    """A reading has no effect: one side of it is enough."""
    from mimir.bootstrap.clock import SystemClock

    now, monotonic = SystemClock.now, SystemClock.monotonic

    def looked(self: SystemClock) -> object:
        fuse.cross("clock", "now", "before")
        return now(self)

    def counted(self: SystemClock) -> float:
        fuse.cross("clock", "monotonic", "before")
        return monotonic(self)

    SystemClock.now = looked  # type: ignore[method-assign,assignment]
    SystemClock.monotonic = counted  # type: ignore[method-assign]
