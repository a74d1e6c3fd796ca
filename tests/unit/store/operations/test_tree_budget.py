"""Budget of trees and sessions: no run with all below it, and no session, exceeds its limits."""

import contextlib
import random
from pathlib import Path

import pytest

from mimir.domain.money import ModelPrice
from mimir.domain.usage import TokenUsage
from mimir.errors import Paused
from mimir.store.operations import budget, runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import WriteOps
from mimir.store.row_fields import int_field
from mimir.store.schema import NodeLabel
from tests.support.clock import FrozenClock
from tests.support.stores import KINDS, opened

MODEL = "m"
LIMITS = (
    ("maxCalls", "callsUsed", "treeCalls"),
    ("maxTokens", "tokens", "treeTokens"),
    ("maxCost", "cost", "treeCost"),
)


def new_run(id: str, parent: str, chance: random.Random) -> NewRun:
    def limit(most: int) -> int | None:
        return chance.choice((None, chance.randint(0, most)))

    return NewRun(
        id=id, kind="agent", project_id="p", project_name="p", name=id, request="r", plan=None, plan_path="",
        settings={}, engine_version="0", base_commit="", base_tree="", parent_run=parent, session_id="s-1",
        max_calls=limit(12), max_tokens=limit(4000), max_cost=limit(4000),
        prices={MODEL: ModelPrice(input=1, output=1)},
    )  # fmt: skip


def usage(chance: random.Random, most: int) -> TokenUsage:
    given = chance.randint(0, most)
    return TokenUsage(input_tokens=given, output_tokens=most - given)


@pytest.mark.parametrize("seed", range(12))
async def test_no_tree_of_agents_spends_more_than_its_limits(
    seed: int, tmp_path: Path, frozen_clock: FrozenClock
):
    chance = random.Random(seed)
    ids = [f"r{number}" for number in range(chance.randint(2, 7))]
    parents = {id: ids[chance.randrange(at)] if at else "" for at, id in enumerate(ids)}
    left: list[tuple[str, TokenUsage]] = []

    def step(ops: WriteOps) -> None:
        run = chance.choice(ids)
        if left and chance.random() < 0.4:
            run, bound = left.pop(chance.randrange(len(left)))
            budget.spend(ops, run, [(MODEL, bound, usage(chance, chance.randint(0, bound.total)))])
            return
        bound = usage(chance, chance.randint(1, 900))
        budget.reserve(ops, run, MODEL, bound, None)
        left.append((run, bound))

    def look(ops: WriteOps) -> None:
        rows = {id: ops.get(NodeLabel.RUN, id) or {} for id in ids}
        own = {
            id: {
                "callsUsed": int_field(row, "callsUsed"),
                "tokens": int_field(row, "tokensUsed") + int_field(row, "tokensReserved"),
                "cost": int_field(row, "costUsed") + int_field(row, "costReserved"),
            }
            for id, row in rows.items()
        }
        # The session counts each call once, at any depth.
        session = ops.get(NodeLabel.SESSION, "s-1") or {}
        for limit, name, tree in LIMITS:
            spent, cap = sum(one[name] for one in own.values()), session.get(limit)
            assert int_field(session, tree) == spent
            assert not isinstance(cap, int) or spent <= cap
        for id, row in rows.items():
            below = [one for one in ids if id in line(one)]
            for limit, name, tree in LIMITS:
                spent = sum(own[one][name] for one in below)
                # The root sees the reservation of a run below.
                assert int_field(row, tree) == spent
                cap = row.get(limit)
                assert not isinstance(cap, int) or spent + own[id][name] <= cap

    def line(id: str) -> list[str]:
        above = parents[id]
        return [above, *line(above)] if above else []

    caps = {limit: chance.choice((None, chance.randint(0, 6000))) for limit, _, _ in LIMITS}
    session = {"id": "s-1", "projectId": "p", "lastSeenAt": "2030", **caps}
    async with opened(KINDS["sqlite"](tmp_path, frozen_clock)) as store:
        await store.write(lambda ops: ops.upsert(NodeLabel.SESSION, [session]))
        for id in ids:
            await store.write(lambda ops, id=id: runs.create(ops, new_run(id, parents[id], chance)))
        for _ in range(40):
            with contextlib.suppress(Paused):
                await store.write(step, durable=False)
            await store.write(look, durable=False)
