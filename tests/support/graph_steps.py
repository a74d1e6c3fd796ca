"""Random transactions of Hypothesis: their steps, on a store and on the simplest graph."""

from typing import Literal

from hypothesis import strategies as st

from mimir.errors import StoreError
from mimir.store.protocol import Value, Where, WriteOps
from tests.support.graph_model import GraphModel

Props = dict[str, Value]
Step = (
    tuple[Literal["get"], str, str]
    | tuple[Literal["find"], str, Where]
    | tuple[Literal["upsert", "patch"], str, str, Props]
    | tuple[Literal["patch_if"], str, str, Where, Props]
    | tuple[Literal["delete"], str, list[str]]
    | tuple[Literal["link"], str, str, str]
)
"""Name of an operation with its arguments."""

IDS = st.sampled_from(["a", "b", "c", "e's 🧊"])
LABELS = st.sampled_from(["Task", "Memory"])
TYPES = st.sampled_from(["DEPENDS_ON", "HAS_TASK"])
TEXTS = st.one_of(
    st.sampled_from(["", "a", "b", "1", '["a"]', "a\0b"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    st.sampled_from(["l", "l\0"]).map(lambda text: text * 1000),
)
NUMBERS = st.one_of(st.integers(-1, 2), st.sampled_from([0.5, 1.0, 2**63 - 1]))
VALUES = st.one_of(TEXTS, NUMBERS, st.booleans(), st.lists(TEXTS, max_size=2))
PROPS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | VALUES,
        "b": st.none() | VALUES,
        "text": st.none() | TEXTS,
        "status": st.none() | TEXTS,
        "runId": st.none() | TEXTS,
        "seq": st.none() | NUMBERS,
    },
)
NAMES = st.sampled_from(["a", "b", "text", "status", "seq", "id"])
CONDITIONS = st.dictionaries(
    NAMES,
    st.one_of(
        st.none() | VALUES,
        st.tuples(st.just("in"), st.lists(st.none() | VALUES, max_size=3)),
        st.tuples(st.just("!="), st.none() | VALUES),
        st.tuples(st.sampled_from(["<", "<=", ">", ">="]), TEXTS | NUMBERS),
    ),
    max_size=2,
)
ORDERS = st.lists(st.sampled_from(["text", "-text", "status", "-status", "id", "-id"]), max_size=2)
UPSERTS = st.tuples(st.just("upsert"), LABELS, IDS, PROPS)
STEPS = st.lists(
    st.one_of(
        UPSERTS,
        st.tuples(st.just("patch"), LABELS, IDS, PROPS),
        st.tuples(st.just("patch_if"), LABELS, IDS, CONDITIONS, PROPS),
        st.tuples(st.just("link"), TYPES, IDS, IDS),
        st.tuples(st.just("delete"), LABELS, st.lists(IDS, max_size=1)),
        st.tuples(st.just("get"), LABELS, IDS),
        st.tuples(st.just("find"), LABELS, CONDITIONS),
    ),
    min_size=1,
    max_size=6,
)
QUESTIONS = st.lists(
    st.tuples(LABELS, CONDITIONS, ORDERS, st.none() | st.integers(0, 3)), min_size=3, max_size=8
)


class UndoneError(Exception):
    """Ends a transaction that must leave nothing."""


def on_store(ops: WriteOps, step: Step) -> object:
    """Do one step in a transaction; return its answer."""
    match step:
        case ("get", label, id):
            return ops.get(label, id)
        case ("find", label, where):
            return ops.find(label, where)
        case ("upsert", label, id, props):
            ops.upsert(label, [{"id": id, **props}])
            return True
        case ("patch", label, id, props):
            return ops.patch(label, id, props)
        case ("patch_if", label, id, expect, props):
            return ops.patch_if(label, id, expect, props)
        case ("delete", label, ids):
            return ops.delete(label, ids)
        case ("link", type, source, target):
            ops.link(type, [(source, target)])
            return True


def on_model(model: GraphModel, step: Step) -> object:
    """Do one step on the model; return its answer, or `StoreError` itself where a store must refuse."""
    match step:
        case ("get", label, id):
            return model.get(label, id)
        case ("find", label, where):
            return model.find(label, where)
        case ("upsert", label, id, props):
            return model.upsert(label, {"id": id, **props}) or StoreError
        case ("patch", label, id, props):
            return model.patch(label, id, props)
        case ("patch_if", label, id, expect, props):
            return model.patch_if(label, id, expect, props)
        case ("delete", label, ids):
            return model.delete(label, ids)
        case ("link", type, source, target):
            return model.link(type, source, target) or StoreError
