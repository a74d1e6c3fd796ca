"""Measurement of claims: many processes share the tasks of one run.

`python -m scripts.claims --claimers 10 50 --tasks 1000`, on SQLite and on a Neo4j server. Each
claimer is a process with some agents, as `mimir worker` is: it claims as many tasks as agents are
idle, in one transaction, and ends them. It prints for each store and number of claimers: tasks
claimed twice, conflicts, milliseconds for a claimed task, and the share of successful claims. It
fails if a task was claimed twice, or if a goal given with `--strict` is missed.
"""

import argparse
import asyncio
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from mimir.domain.plan import Criterion, Plan, Task
from mimir.errors import UnavailableError
from mimir.store.neo4j.address import is_address, parse
from mimir.store.operations import claims, runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.schema import NodeLabel

RUN = "run-claims"
LEASE_SECONDS = 300.0
AGENTS = 4
"""Parallel tasks of a process: the default of `mimir worker`."""
TRIES = 20
GOALS = {"conflicts": 0.01, "p99_ms": 50.0, "efficiency": 0.95}


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """Figures of one process."""

    tasks: list[str]
    milliseconds: list[float]
    """For each claimed task: its share of the transaction, including the wait for locks."""
    transactions: list[float]
    """Milliseconds of each claim."""
    processor_ms: float
    """CPU time of this process, summed over its claims, without the server's."""
    tries: int
    empty: int
    """Claims that failed although a task had been seen: another process was faster."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of a race."""

    store: str
    claimers: int
    tasks: int
    doubled: int
    missing: int
    conflicts: float
    p50_ms: float
    p99_ms: float
    transaction_p99_ms: float
    processor_ms: float
    """For each claimer and claim."""
    efficiency: float
    seconds: float

    def line(self) -> str:
        """Return the printed line."""
        return (
            f"{self.store:7} {self.claimers:3} claimers × {self.tasks} tasks: {self.doubled} claimed twice, {self.missing} left, "
            f"conflicts {self.conflicts:.2%}, per task p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms, "
            f"claim p99 {self.transaction_p99_ms:.0f} ms, "
            f"processor {self.processor_ms:.1f} ms a claim, efficiency {self.efficiency:.1%}, {self.seconds:.1f} s"
        )

    @property
    def missed(self) -> list[str]:
        """Return the goals that are missed."""
        found = ["claimed twice"] if self.doubled or self.missing else []
        found += ["conflicts"] if self.conflicts >= GOALS["conflicts"] else []
        found += ["p99"] if self.p99_ms >= GOALS["p99_ms"] else []
        return found + (["efficiency"] if self.efficiency <= GOALS["efficiency"] else [])


def opened(uri: str) -> GraphStore:
    """Return a store that is not open yet."""
    if is_address(uri):
        from mimir.store.neo4j.neo4j_store import Neo4jStore

        return Neo4jStore(parse(uri), _Clock(), door=secrets.token_hex(8))
    from mimir.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(Path(uri), _Clock())


async def reached(uri: str) -> GraphStore:
    """Open a store; a server that just started may need several tries."""
    for left in reversed(range(TRIES)):
        store = opened(uri)
        try:
            await store.init()
        except UnavailableError:
            if not left:
                raise
        else:
            return store
    raise AssertionError("no try was made")


async def prepare(uri: str, tasks: int) -> None:
    """Create a run whose tasks are all released."""
    plan = Plan(title="Claims", goal="", tasks=tuple(_task(n) for n in range(tasks)))
    new = NewRun(
        id=RUN, kind="execute", project_id="project-claims", project_name="claims", name="Claims", request="", plan=plan,
        plan_path="", settings={}, engine_version="", base_commit="c0", base_tree="t0",
    )  # fmt: skip
    store = await reached(uri)
    try:
        await store.write(partial(runs.create, new=new))
        ready = [(task.id, 1.0) for task in plan.tasks]
        for start in range(0, tasks, 100):
            await store.write(
                partial(claims.release_task, run=RUN, ready=ready[start : start + 100])
            )
    finally:
        await store.close()


def _task(number: int) -> Task:
    text = f"Do the part with the number {number}. " * 20
    return Task(
        id=f"task-{number:05d}",
        title=f"Part {number}",
        prompt=text,
        worker_role="Engineer",
        criteria=(Criterion(id="c1", text="It works"),),
    )


async def claim_all(uri: str, owner: str) -> Claimed:
    """Claim and end tasks until none is left; it starts at a line on standard input."""
    store = await reached(uri)
    tasks: list[str] = []
    shares: list[float] = []
    transactions: list[float] = []
    tries = empty = 0
    processor = 0.0
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    look = partial(claims.is_work_there, run=RUN)
    take = partial(claims.claim, run=RUN, owner=owner, lease_seconds=LEASE_SECONDS, limit=AGENTS)
    try:
        while await store.read(look):
            begun, used = time.perf_counter(), time.process_time()
            taken = await store.write(take)
            processor += (time.process_time() - used) * 1000
            spent = (time.perf_counter() - begun) * 1000
            tries += 1
            transactions.append(spent)
            if not taken:
                empty += 1
                continue
            tasks += [claim.task for claim in taken]
            shares += [spent / len(taken)] * len(taken)
            await store.write(partial(_end, taken=taken))
    finally:
        await store.close()
    return Claimed(
        tasks=tasks,
        milliseconds=shares,
        transactions=transactions,
        processor_ms=processor,
        tries=tries,
        empty=empty,
    )


def _end(ops: WriteOps, taken: Sequence[claims.Claim]) -> None:
    """End tasks, so that at most as many are claimed as agents work."""
    ended = {"status": "completed", "claimState": None, "lockedBy": None, "expiresAt": None}
    ops.upsert(NodeLabel.TASK, [{"id": claim.row["id"], **ended} for claim in taken])


def race(name: str, uri: str, claimers: int, tasks: int) -> Result:
    """Let processes claim all tasks of a new run."""
    asyncio.run(prepare(uri, tasks))
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "scripts.claims", "--claim", f"claimer-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(claimers)
    ]
    for process in processes:
        _tell(process, uri)  # not on the command line: there may be a password in it
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    begun = time.perf_counter()
    for process in processes:
        _tell(process, "go")
    ended = [process.communicate()[0] for process in processes]
    seconds = time.perf_counter() - begun
    return _result(name, claimers, tasks, [Claimed(**json.loads(text)) for text in ended], seconds)


def _tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _result(
    name: str, claimers: int, tasks: int, all_of_them: Sequence[Claimed], seconds: float
) -> Result:
    counted = Counter(task for one in all_of_them for task in one.tasks)
    shares = sorted(share for one in all_of_them for share in one.milliseconds)
    transactions = sorted(t for one in all_of_them for t in one.transactions)
    empty = sum(one.empty for one in all_of_them)
    return Result(
        store=name,
        claimers=claimers,
        tasks=tasks,
        doubled=sum(times - 1 for times in counted.values()),
        missing=tasks - len(counted),
        conflicts=sum(times - 1 for times in counted.values()) / max(1, sum(counted.values())),
        p50_ms=_at(shares, 0.5),
        p99_ms=_at(shares, 0.99),
        transaction_p99_ms=_at(transactions, 0.99),
        processor_ms=sum(one.processor_ms for one in all_of_them) / max(1, len(transactions)),
        efficiency=counted.total() / max(1, counted.total() + empty),
        seconds=seconds,
    )


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


@contextmanager
def stores(wanted: Sequence[str], given: str) -> Iterator[Mapping[str, str]]:
    """Yield the URI of a new store of each kind; start a Neo4j server if none is given."""
    with tempfile.TemporaryDirectory(prefix="mimir-claims-") as folder:
        found: dict[str, str] = {}
        server = None
        if "sqlite" in wanted:
            found["sqlite"] = f"{folder}/claims"
        if "neo4j" in wanted:
            from tests.support.local_neo4j import LocalServer

            if not given:
                server = LocalServer(Path(folder) / "neo4j", options=("-XX:+UseSerialGC",))
                server.start()
            found["neo4j"] = given or (server.uri if server else "")
        try:
            yield found
        finally:
            if server:
                server.stop()


def main() -> int:
    """Run the requested races."""
    parser = argparse.ArgumentParser(prog="make claims", description=__doc__)
    parser.add_argument("--claimers", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument(
        "--stores", nargs="+", choices=("sqlite", "neo4j"), default=["sqlite", "neo4j"]
    )
    parser.add_argument("--neo4j", default="", help="URI of a server; default: one is started")
    parser.add_argument(
        "--warm-up", type=int, default=3, metavar="RACES",
        help="races of 10 before, on a Neo4j server that was started for this: Java compiles frequent code; shown, not judged",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="fail if a goal is missed")
    parser.add_argument("--claim", metavar="OWNER", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.claim:
        uri = sys.stdin.readline().strip()
        print(json.dumps(asdict(asyncio.run(claim_all(uri, asked.claim)))))
        return 0
    bad = False
    with stores(asked.stores, asked.neo4j) as found:
        for name, where in found.items():
            is_new = name == "neo4j" and not asked.neo4j
            warming = [10] * asked.warm_up if is_new else []
            for at, claimers in enumerate((*warming, *asked.claimers)):
                new = secrets.token_hex(4)
                uri = f"{where}?store=c-{new}" if name == "neo4j" else f"{where}-{new}.db"
                result = race(name, uri, claimers, asked.tasks)
                is_judged = asked.strict and at >= len(warming)
                print(result.line() + (" (warm-up)" if at < len(warming) else ""), flush=True)
                bad |= bool(result.missed if is_judged else result.doubled or result.missing)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
