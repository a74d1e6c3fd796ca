"""Checks that are remembered: every run of a check is in the store, also one that nothing was sealed of. A replay serves them again."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol, cast

from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.qc.checks.check_execution import Phase
from mimir.store import codec
from mimir.store.protocol import GraphStore, ReadOps, Row, Where, WriteOps
from mimir.store.schema import NodeLabel, pack, unpack

KIND = "check-run"


class CheckExecutor(Protocol):
    """Whatever can run a check on a tree."""

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run it once.

        Raises:
            Paused: The sandbox or the disk is gone; nothing is said of the check.
        """
        ...


class JournaledChecks:
    """Runs checks by `inner`, and keeps what each run showed."""

    def __init__(self, inner: CheckExecutor, store: GraphStore, owner: str) -> None:
        """Bind it.

        Args:
            inner: Runs them.
            store: Where they are kept.
            owner: This process; names what it keeps.
        """
        self._inner = inner
        self._store = store
        self._owner = owner
        self._count = 0

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run a check and keep the run, before anything is made of it."""
        ran = await self._inner.run(check, tree, phase, answer=answer, again=again)
        speaker = CURRENT_ACTOR.get()
        if speaker is not None:
            self._count += 1
            name = f"{speaker.run}#check-{self._owner}-{self._count:06d}"
            await self._store.write(
                partial(_keep, id=name, owner=self._owner, speaker=speaker, check=check, ran=ran)
            )
        return ran


def _keep(ops: WriteOps, id: str, owner: str, speaker: Actor, check: Check, ran: CheckRun) -> None:
    row: Row = {
        "id": id, "name": f"check {check.id}", "runId": speaker.run, "kind": KIND, "createdAt": ops.now(),
        "by": speaker.place, "owner": owner, "timeoutSeconds": float(check.timeout_seconds), "text": pack(codec.encode(ran)),
    }  # fmt: skip
    ops.upsert(NodeLabel.ARTIFACT, [row])


def load_check_runs(reads: ReadOps, run: str, since: str = "") -> Sequence[Row]:
    """Return the rows of a run's check runs in the order in which they ended, from a time on."""
    where: Where = {"runId": run, "kind": KIND, "createdAt": (">=", since)}
    return reads.find(NodeLabel.ARTIFACT, where, order=("createdAt", "id"))


def ran(row: Row) -> CheckRun:
    """Return the run that a row keeps.

    Raises:
        StoreError: It cannot be read.
    """
    return codec.decode(CheckRun, unpack(cast("str", row.get("text") or "")))
