"""Random edits of the stored nodes of a finished run, in each kind of store: verifying names each, with and without its seal."""

import random
from pathlib import Path

import pytest

from mimir.domain.run import RunBudget
from mimir.errors import StoreError
from mimir.orchestrator.api import Mimir
from mimir.store.protocol import ReadOps, Row, Value
from mimir.store.schema import NodeLabel, pack
from mimir.store.sealing.row_digests import LABELS, VOLATILE, iterate_rows
from tests.support.clock import FrozenClock
from tests.support.stores import EACH_KIND, KINDS
from tests.support.stores import opened as opened_store
from tests.support.trust_sizes import Cases, size
from tests.support.whole_run import PLAN_PATH, opened, plan, start, step, wrote

EDITS = {"sqlite": 8, "neo4j": 3}
"""Number of edits of the small size, for each kind of store."""
TASKS = plan(step("a"))


def edit(row: Row, chance: random.Random) -> tuple[str, Value]:
    """Return a property of a node, and another value for it."""
    name = chance.choice(sorted(name for name in row if name != "id" and name not in VOLATILE))
    value = row[name]
    if isinstance(value, str) and value:
        at = chance.randrange(len(value))
        return name, value[:at] + ("0" if value[at] != "0" else "1") + value[at + 1 :]
    other = chance.choice(["x", 7, True, 7.5])
    return name, "another" if pack(other) == pack(value) else other


async def problems(mimir: Mimir, run: str, seal: str) -> tuple[str, ...]:
    """Return the findings of `verify`; a value of another type cannot even be read."""
    try:
        return (await mimir.verify(run, seal)).problems
    except StoreError as error:
        return (str(error),)


@pytest.mark.parametrize("kind", EACH_KIND)
async def test_each_random_edit_of_a_finished_run_is_named(kind: str, cases: Cases, tmp_path: Path):
    project, where = start(tmp_path), str(tmp_path / "project/.mimir/mimir.db")
    if kind == "neo4j":
        from tests.support.neo4j_servers import store_uri

        where = store_uri(project)
    chance = random.Random(35)

    async with opened(project, [wrote("a")], store=where) as mimir:
        run = await mimir.create_run(TASKS, PLAN_PATH, only=(), limits=RunBudget())
        end = await mimir.drive(run, workers=1, apply="never", limits=RunBudget(), resumed=False)
        assert (await mimir.verify(run, end.seal)).ok

        def load(reads: ReadOps) -> dict[str, list[Row]]:
            labels = [label for label in LABELS if label != NodeLabel.QUESTION]  # it asks nothing
            return {str(label): list(iterate_rows(reads, run, label)) for label in labels}

        async with opened_store(KINDS[kind](project, FrozenClock())) as store:
            nodes = await store.read(load)
            assert all(nodes.values())
            for number in range(EDITS[kind] if size() == "small" else 200):
                label = chance.choice(sorted(nodes))
                row = chance.choice(nodes[label])
                id = str(row["id"])
                name, value = edit(row, chance)
                try:
                    await store.write(lambda ops: ops.patch(label, id, {name: value}))  # noqa: B023
                except StoreError:  # some properties hold values of one type only
                    continue
                # A node of another run is absent from this one.
                is_moved = name == "runId" and label != NodeLabel.RUN
                named = f"{label}: 1 node(s) are gone" if is_moved else id
                with cases.case((kind, number, id, name)):
                    for seal in ("", end.seal):
                        assert any(named in problem for problem in await problems(mimir, run, seal))
                await store.write(lambda ops: ops.patch(label, id, {name: row[name]}))  # noqa: B023
        assert (await mimir.verify(run, end.seal)).ok
