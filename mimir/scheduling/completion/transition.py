"""Moves a claimed task: status, phase values, sealed records, artifacts, the run's head and the event in one fenced transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mimir.attempts.services import Props
from mimir.domain.event import EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.ids import attempt_id
from mimir.domain.task_states import TERMINAL, TaskStatus, TransitionActor
from mimir.domain.turn_hook import give_way
from mimir.domain.verdict import Verdict
from mimir.scheduling.completion import attempt_outcome
from mimir.scheduling.run_services import RunServices
from mimir.store.deferring_store import DeferringStore
from mimir.store.operations import attempt_traces, claims, evidence, runs
from mimir.store.operations.claims import Claim
from mimir.store.protocol import WriteOps
from mimir.store.schema import PHASES


class TransitionWriter:
    """The mover of one claim; the chain that it was made with grows as records are sealed."""

    def __init__(
        self, crew: RunServices, store: DeferringStore, claim: Claim, records: list[EvidenceRecord]
    ) -> None:
        self._crew = crew
        self._store = store
        self._claim = claim
        self._records = records

    async def __call__(
        self,
        to: TaskStatus,
        kind: EventKind,
        *,
        task: Props | None = None,
        attempt: Props | None = None,
        data: Mapping[str, object] | None = None,
        records: Sequence[EvidenceRecord] = (),
        artifacts: Mapping[str, str] | None = None,
        judgement: Verdict | None = None,
        mover: TransitionActor | None = None,
        publish: "HeadUpdate | None" = None,
        waits: bool = False,
    ) -> bool:
        """Write it all, or nothing; with `waits` together with the attempt's next write.

        Returns:
            False only if `publish` refused: the run's head has moved meanwhile.

        Raises:
            LeaseLost: Another holder has the task.
        """
        run, claim = self._crew.facts.id, self._claim
        name = attempt_id(run, claim.task, claim.attempt)
        done = to is TaskStatus.COMPLETED

        def work(ops: WriteOps) -> bool:
            if publish and not runs.advance_head(
                ops, run, publish.expect, publish.head, publish.tree
            ):
                return False
            for suffix, text in (artifacts or {}).items():
                evidence.put_artifact(ops, f"{name}/{suffix}", run, suffix, text, name)
            if records:
                evidence.append(ops, run, claim.task, claim.attempt, claim.fence, name, records)
            if judgement:
                number = len(ops.neighbours(name, ["HAS_VERDICT"], "out")) + 1
                evidence.put_verdict(ops, run, claim.task, claim.attempt, number, judgement)
                self._trace_reviewer(ops, name)
            told: Props = {}
            if judgement or done:
                row = claims.check_fence(ops, run, claim.task, claim.fence)
                attempt_traces.left_files(ops, run, name, _changed(task) if done else ())
                told = attempt_outcome.history_values(
                    row, claim.attempt, judgement, now=ops.now(), is_done=done
                )
            values = {**(task or {}), **told}
            claims.move(
                ops,
                run,
                claim.task,
                claim.fence,
                to,
                mover or _mover(to),
                props=values,
                attempt_props={**_copied(values, to), **(attempt or {})},
                kind=kind,
                data=data,
            )
            return True

        if waits and self._crew.answers_wait:
            self._store.later(work)
            self._records.extend(records)
            return True
        moved = await self._commit(work, durable=not done or self._must_stay(publish))
        if moved:
            self._records.extend(records)
            if to not in _BY_MACHINE:  # nobody waits for what happens inside an attempt
                self._crew.wake.task_moved(is_offer=to is TaskStatus.PREPARING_RETRY)
        return moved

    def _must_stay(self, publish: "HeadUpdate | None") -> bool:
        """Tell whether no power cut may take a completion: what changed no file may be judged once more.

        Where models answer at once nobody waits for the disk alone: who does is committed together with all others of that moment.
        """
        return publish is not None or not self._crew.turns.pay

    async def _commit(self, work: Callable[[WriteOps], bool], *, durable: bool) -> bool:
        if durable:
            give_way()  # the disk is waited for
        return await self._store.write(work, durable=durable)

    def _trace_reviewer(self, ops: WriteOps, attempt: str) -> None:
        facts = self._crew.facts
        role = facts.tasks[self._claim.task].reviewer
        used = facts.preambles["qc", role]
        attempt_traces.used_preamble(ops, attempt, facts.project, "qc", role, used.hash)


def _changed(values: Props | None) -> list[str]:
    """Return the files that a completed task brings onto the line."""
    changed = (values or {}).get("filesChanged")
    return changed if isinstance(changed, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadUpdate:
    """A move of the run's head that must happen together with a status."""

    expect: str
    head: str
    tree: str


_BY_MACHINE = (
    TaskStatus.WORKER_COMPLETED,
    TaskStatus.QC_EXECUTING,
    TaskStatus.QC_PASSED,
    TaskStatus.QC_FAILED,
)


_PHASES = frozenset(name for names in PHASES.values() for name in names)
_VERDICT = frozenset(PHASES[6])


def _copied(values: Props, to: TaskStatus) -> Props:
    """Return what an attempt keeps of the values of a phase: on the task the next attempt's take their place.

    What QC said of it stays as it was sealed, whatever became of the task afterwards.
    """
    own = _PHASES - _VERDICT if to in TERMINAL else _PHASES
    return {name: value for name, value in values.items() if name in own}


def _mover(to: TaskStatus) -> TransitionActor:
    return TransitionActor.MACHINE if to in _BY_MACHINE else TransitionActor.SCHEDULING
