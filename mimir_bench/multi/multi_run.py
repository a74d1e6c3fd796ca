"""Program that runs one case on both sides: `python -m mimir_bench.multi.multi_run`.

Input: one case as JSON. Output: figures as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from mimir.bootstrap import app
from mimir.domain.json_value import as_number, as_objects
from mimir.domain.run import RunBudget
from mimir.errors import UnavailableError
from mimir.planning.renderer import render
from mimir.store.operations.record_loading import load_run_calls
from mimir.store.protocol import GraphStore
from mimir.store.records.call_records import CallRecord
from mimir_bench import virtual_time
from mimir_bench.multi import multi_case as cases
from mimir_bench.multi.multi_case import REQUEST, MultiCase
from mimir_bench.subprocesses import question
from mimir_bench.work_site import WorkSite, drive_run, site

_ROOM_FOR_ALL = {"run.attempt_tokens": 10**9}
"""One agent that does everything uses more tokens than an attempt may, as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Calls and tokens of one side's models, by the engine's estimate."""

    calls: int
    tokens: int
    largest: int
    """Of one call; without the PM, whose context the work does not enlarge."""
    planner_largest: int
    """Of one call of the PM."""
    agents: int
    """Conversations."""
    seconds: float
    """Duration of the run if only models take time."""
    deduplication: float | None
    """As in the run's report; None: no context was shared."""


async def run_many_agents(
    where: WorkSite, case: MultiCase, around: Callable[[GraphStore], GraphStore]
) -> TokenCounts:
    """Run a case with PM, workers and QC; calls of every model count."""
    plan = cases.plan(case)
    stores: list[GraphStore] = []
    loaded = where.load_settings(cases.fleet(case, render(plan)), _ROOM_FOR_ALL)
    async with app.open(
        where.project, loaded, around_store=_wrap_and_keep(stores, around)
    ) as mimir:
        began = asyncio.get_running_loop().time()
        # Planning counts: one agent plans within its own conversation.
        planned = await mimir.plan(REQUEST, ecko=False, output=None, model="")
        if planned.exit_code:
            raise UnavailableError("The plan of a case was not accepted.")
        # The same plan as an object: the run does not depend on how the text was read.
        run = await mimir.create_run(plan, planned.path, only=(), limits=RunBudget())
        await drive_run(mimir, run, case.workers)
        seconds = asyncio.get_running_loop().time() - began
        metrics = as_objects((await mimir.report_json(run))["metrics"])
        rate = next(m["value"] for m in metrics if m["id"] == "context_deduplication_rate")
        calls = await _model_calls(stores[0], (run, planned.run))
    return _count_tokens(calls, seconds, as_number(rate))


async def run_single_agent(
    where: WorkSite, case: MultiCase, around: Callable[[GraphStore], GraphStore]
) -> TokenCounts:
    """Run a case with one agent; only its own calls count, not those of QC."""
    stores: list[GraphStore] = []
    loaded = where.load_settings(
        cases.single_agent_script(case, render(cases.plan(case))), _ROOM_FOR_ALL
    )
    async with app.open(
        where.project, loaded, around_store=_wrap_and_keep(stores, around)
    ) as mimir:
        run = await mimir.create_run(cases.single_task_plan(case), "", only=(), limits=RunBudget())
        began = asyncio.get_running_loop().time()
        await drive_run(mimir, run, 1)
        seconds = asyncio.get_running_loop().time() - began
        calls = await _model_calls(stores[0], (run,))
    return _count_tokens([call for call in calls if _role(call) == "worker"], seconds, None)


def _wrap_and_keep(
    stores: list[GraphStore], around: Callable[[GraphStore], GraphStore]
) -> Callable[[GraphStore], GraphStore]:
    # The API offers no calls; they are read from the store, which only this hook can reach.
    def keep(store: GraphStore) -> GraphStore:
        stores.append(around(store))
        return stores[-1]

    return keep


async def _model_calls(store: GraphStore, runs: Sequence[str]) -> list[CallRecord]:
    found: list[CallRecord] = []
    for run in runs:
        found += await store.read(lambda reads, run=run: load_run_calls(reads, run, kind="model"))
    return found


def _role(call: CallRecord) -> str:
    return call.transcript.rsplit("/", 1)[-1].partition(".")[0].partition("#")[0]


def _count_tokens(calls: Sequence[CallRecord], seconds: float, rate: float | None) -> TokenCounts:
    # Input tokens only: answers are scripted, and equal on both sides.
    sent = [(_role(call), call.input_tokens or 0) for call in calls]
    return TokenCounts(
        calls=len(sent),
        tokens=sum(tokens for _, tokens in sent),
        largest=max(tokens for role, tokens in sent if role != "pm"),
        planner_largest=max((tokens for role, tokens in sent if role == "pm"), default=0),
        agents=len({call.transcript for call in calls}),
        seconds=round(seconds, 1),
        deduplication=rate,
    )


async def _both(case: MultiCase, around: Callable[[GraphStore], GraphStore]) -> list[TokenCounts]:
    counted: list[TokenCounts] = []
    for side in (run_single_agent, run_many_agents):
        # A new project for each side, so that neither sees files or memory of the other.
        async with site(cases.project(case)) as where:
            counted.append(await side(where, case, around))
    return counted


def main() -> None:
    """Read a case, run both sides, and write their figures: one agent first."""
    case = MultiCase(**json.loads(question()))
    counted = virtual_time.run(
        lambda loop: _both(case, lambda store: virtual_time.VirtualTimeStore(store, loop))
    )
    sys.stdout.write(json.dumps([asdict(side) for side in counted]))


if __name__ == "__main__":
    main()
