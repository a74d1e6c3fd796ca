"""Runs the command line in a process that dies by itself: `python -m tests.support.crash_at PLACE COUNT -- execute …`.

The process ends as SIGKILL would end it, just before or just after the named step is done for the COUNT-th time.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mimir.orchestrator.runs import execution
from mimir.qc.checks.check_runner import CheckRunner
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.workspace.git.history import GitHistory
from mimir.workspace.user_tree import user_file as person


class _Fuse:
    def __init__(self, count: int) -> None:
        self._left = count

    def burn(self) -> None:
        self._left -= 1
        if self._left == 0:
            os._exit(137)


def _after_merge_commit(fuse: _Fuse) -> None:
    """Between the merge's commit and the transaction that moves the head with the status."""
    commit: Callable[..., Awaitable[str]] = GitHistory.commit

    async def dying(
        self: GitHistory, tree: str, parents: Sequence[str], message: str, **more: Any
    ) -> str:
        made = await commit(self, tree, parents, message, **more)
        if message.startswith("Merge "):
            fuse.burn()
        return made

    GitHistory.commit = dying  # type: ignore[method-assign,assignment]


def _in_apply(fuse: _Fuse) -> None:
    """After a file was copied to the user's directory, before the next."""
    make = person.make_change

    def dying(*given: object, **more: object) -> object:
        done = make(*given, **more)  # type: ignore[arg-type]
        fuse.burn()
        return done

    person.make_change = dying  # type: ignore[assignment]


def _at_commit(fuse: _Fuse) -> None:
    """Around a commit of the store: every second time before it, else after it."""
    start = SqliteStore.__init__

    def made(self: SqliteStore, *given: object, **more: object) -> None:
        def fault(_place: str) -> None:
            fuse.burn()

        start(self, *given, **more, faults=fault)  # type: ignore[arg-type]

    SqliteStore.__init__ = made  # type: ignore[method-assign]


def _after_control(fuse: _Fuse) -> None:
    """Between a negative control and the transaction that seals it."""
    control: Callable[..., Awaitable[Any]] = CheckRunner.control

    async def dying(self: CheckRunner, *given: Any) -> Any:
        ran = await control(self, *given)
        fuse.burn()
        return ran

    CheckRunner.control = dying  # type: ignore[method-assign,assignment]


def _in_record(fuse: _Fuse) -> None:
    """In the transaction that ends a run, after its record was written."""
    write = execution.write_record

    def dying(*given: Any) -> None:
        write(*given)
        fuse.burn()

    execution.write_record = dying


PLACES = {
    "merge": _after_merge_commit,
    "apply": _in_apply,
    "commit": _at_commit,
    "control": _after_control,
    "record": _in_record,
}


def main() -> None:
    """Light the fuse and run the command."""
    place, count, _, *words = sys.argv[1:]
    PLACES[place](_Fuse(int(count)))
    from mimir.cli.main import main as mimir

    sys.argv = ["mimir", *words]
    mimir()


if __name__ == "__main__":
    main()
