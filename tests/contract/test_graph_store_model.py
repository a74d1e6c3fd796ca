"""Any sequence of transactions leaves a store as it leaves the simplest graph there is."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from mimir.errors import StoreError
from tests.support.clock import FrozenClock
from tests.support.environment import MODEL_BOUNDS
from tests.support.graph_model import GraphModel
from tests.support.graph_steps import (  # fmt: skip
    IDS,
    NAMES,
    QUESTIONS,
    STEPS,
    TYPES,
    UPSERTS,
    UndoneError,
    on_model,
    on_store,
)
from tests.support.stores import EACH_KIND, KINDS

NO_SHRINKING = (Phase.explicit, Phase.generate)
"""It takes minutes over a real store."""


class StoreMachine(RuleBasedStateMachine):
    kind = ""

    def __init__(self):
        super().__init__()
        self.room = Path(tempfile.mkdtemp(prefix="mimir-model-"))
        self.runner = asyncio.Runner()
        self.store = KINDS[self.kind](self.room, FrozenClock())
        self.runner.run(self.store.init())
        self.model = GraphModel()

    def teardown(self):
        self.runner.run(self.store.close())
        self.runner.close()
        shutil.rmtree(self.room)

    @initialize(steps=st.lists(UPSERTS, min_size=6, max_size=10))
    def begins(self, steps):
        self.commits(steps)

    @rule(steps=STEPS)
    def commits(self, steps):
        """A transaction of several verbs, as far as the store may not refuse one."""
        good, answers = [], []
        for step in steps:
            answer = on_model(self.model, step)
            if answer is not StoreError:
                good.append(step)
                answers.append(answer)
        assert (
            self.runner.run(self.store.write(lambda ops: [on_store(ops, s) for s in good]))
            == answers
        )

    @rule(steps=STEPS)
    def refuses(self, steps):
        """A transaction with one verb that the store must refuse leaves nothing."""
        copy = GraphModel()
        copy.nodes, copy.edges = dict(self.model.nodes), set(self.model.edges)
        if any(on_model(copy, step) is StoreError for step in steps):
            with pytest.raises(StoreError):
                self.runner.run(self.store.write(lambda ops: [on_store(ops, s) for s in steps]))

    @rule(steps=STEPS)
    def rolls_back(self, steps):
        def work(ops):
            for step in steps:
                on_store(ops, step)
            raise UndoneError

        with pytest.raises((UndoneError, StoreError)):
            self.runner.run(self.store.write(work))

    @rule(questions=QUESTIONS)
    def finds(self, questions):
        found = self.runner.run(
            self.store.read(
                lambda r: [r.find(q[0], q[1], order=q[2], limit=q[3]) for q in questions]
            )
        )

        assert found == [self.model.find(*q) for q in questions]

    @rule(questions=QUESTIONS, only=st.lists(NAMES, min_size=1, max_size=5))
    def finds_parts(self, questions, only):
        found = self.runner.run(
            self.store.read(
                lambda r: [r.find(q[0], q[1], order=q[2], limit=q[3], only=only) for q in questions]
            )
        )

        assert found == [
            [{k: v for k, v in row.items() if k in ("id", *only)} for row in self.model.find(*q)]
            for q in questions
        ]

    @rule(
        id=IDS,
        types=st.lists(TYPES, max_size=2),
        direction=st.sampled_from(["out", "in", "both"]),
        depth=st.none() | st.integers(0, 3),
    )
    def reaches(self, id, types, direction, depth):
        reached = self.runner.run(self.store.read(lambda r: r.reach(id, types, direction, depth)))

        assert reached == self.model.reach(id, types, direction, depth)

    @rule()
    def opens_again(self):
        self.runner.run(self.store.close())
        self.store = KINDS[self.kind](self.room, FrozenClock())
        self.runner.run(self.store.init())

    @invariant()
    def holds_the_same_graph(self):
        whole = self.runner.run(self.store.read(lambda r: list(r.dump())))

        assert whole == [
            *sorted(
                ((label, row) for label, row in self.model.nodes.values()),
                key=lambda n: (n[0], n[1]["id"]),
            ),
            *sorted(self.model.edges, key=lambda e: (e[1], e[0], e[2])),
        ]


def bounds(kind: str) -> tuple[int, int]:
    """Return (histories, steps): a few in each `make test`, as many as are asked for in a campaign."""
    asked = os.environ.get(MODEL_BOUNDS)
    if asked:
        histories, steps = asked.split("x")
        return int(histories), int(steps)
    return (50, 15) if kind == "sqlite" else (5, 12)


@pytest.mark.timeout(0 if os.environ.get(MODEL_BOUNDS) else 300)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_any_history_leaves_the_store_as_the_simplest_graph(kind):
    machine = type("Machine", (StoreMachine,), {"kind": kind})

    histories, steps = bounds(kind)

    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=histories, stateful_step_count=steps, phases=NO_SHRINKING),
    )


@pytest.mark.parametrize("kind", EACH_KIND)
def test_any_question_is_answered_as_by_the_simplest_graph(kind, tmp_path):
    with asyncio.Runner() as runner:
        store = KINDS[kind](tmp_path, FrozenClock())
        runner.run(store.init())

        @settings(max_examples=150 if kind == "sqlite" else 30, phases=NO_SHRINKING)
        @given(st.lists(UPSERTS, min_size=3, max_size=8), QUESTIONS)
        def answers(steps, questions):
            model = GraphModel()
            good = [step for step in steps if on_model(model, step) is not StoreError]

            def work(ops):
                for label in ("Task", "Memory"):
                    ops.delete(label, [row["id"] for row in ops.find(label, {})])
                for step in good:
                    on_store(ops, step)
                return [ops.find(q[0], q[1], order=q[2], limit=q[3]) for q in questions]

            assert runner.run(store.write(work)) == [model.find(*q) for q in questions]

        answers()
        runner.run(store.close())
