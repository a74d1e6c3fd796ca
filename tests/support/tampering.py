"""Changes in a stored run that must not stay unseen, and the findings of `verify`."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from mimir.reporting.audit.verification import verify
from mimir.store.protocol import Value, WriteOps
from mimir.store.schema import pack, unpack
from mimir.workspace.git.history import GitHistory
from tests.support.small_run import RUN, SmallRun

Doctor = Callable[[WriteOps], object]


async def problems(run: SmallRun, seal: str = "") -> tuple[str, ...]:
    found = await verify(run.store, cast("GitHistory", run.history), RUN, seal)
    assert found.ok is (found.problems == ())
    return found.problems


async def doctored(run: SmallRun, doctor: Doctor) -> tuple[str, ...]:
    await run.store.write(doctor)
    return await problems(run)


def patch(label: str, id: str, **values: Value) -> Doctor:
    return lambda ops: ops.patch(label, id, values)


def in_json(label: str, id: str, name: str, change: Callable[[dict[str, Any]], None]) -> Doctor:
    """Change one JSON property of a node, keeping its form."""

    def doctor(ops: WriteOps) -> None:
        row = ops.get(label, id)
        assert row is not None
        value = cast("dict[str, Any]", unpack(str(row[name])))
        change(value)
        ops.patch(label, id, {name: pack(value)})

    return doctor


def sql(room: Path, statement: str, *values: str) -> None:
    """Change the store's file behind the store's back."""
    with contextlib.closing(sqlite3.connect(room / "mimir.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0
