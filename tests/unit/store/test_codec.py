import re
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimir.domain.evidence import CheckOutcome
from mimir.domain.failure import QCFailureReport
from mimir.domain.plan import Check, Criterion, Plan
from mimir.domain.task_states import TaskStatus
from mimir.domain.verdict import Verdict
from mimir.errors import StoreError
from mimir.store.codec import decode, encode
from mimir.store.schema import pack, unpack
from tests.support import stored_run


def finite(value):
    """NaN and Infinity are no JSON."""
    return not re.search(r"=(-?inf|nan)\b", repr(value))


@pytest.mark.parametrize("kind", [Plan, Verdict, CheckOutcome, QCFailureReport])
@settings(max_examples=25)
@given(data=st.data())
def test_value_is_decoded_from_json_unchanged(kind, data):
    value = data.draw(st.from_type(kind).filter(finite))

    assert decode(kind, unpack(pack(encode(value)))) == value


def test_half_surrogates_of_a_prompt_are_kept():
    plan = stored_run.plan(stored_run.task("a", prompt="\ud800 \udcff 🧊 \0"))

    assert decode(Plan, unpack(pack(encode(plan)))) == plan


def test_fractions_are_exact_and_enums_are_their_values():
    assert encode(Criterion(id="c", text="t", points=Fraction(1, 3))) == {
        "id": "c", "text": "t", "points": "1/3", "critical": False,
    }  # fmt: skip
    assert encode({"s": TaskStatus.PENDING, "m": (1, None)}) == {"s": "pending", "m": [1, None]}


CHECK = {"id": "u", "criteria": ["c"], "run": ["pytest"], "kind": None, "tests": None, "protect": [], "required": True, "timeout_seconds": 60.0}  # fmt: skip


def test_field_of_a_later_version_has_its_default():
    early = {"id": "u", "criteria": ["c"], "run": "pytest -q"}

    assert decode(Check, early) == Check(id="u", criteria=("c",), run="pytest -q")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "flop"}, "kind"), ({"required": 1}, "required"), ({"criteria": "c"}, "criteria"),
        ({"criteria": [1]}, "criteria"), ({"id": None}, "id"), ({"timeout_seconds": "60"}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"), ({"extra": 1}, "extra"), ({"run": {"a": 1}}, "run"),
    ],
)  # fmt: skip
def test_anything_else_is_an_error_that_names_the_field(change, named):
    with pytest.raises(StoreError, match=named):
        decode(Check, {**CHECK, **change})


def test_missing_field_without_a_default_is_an_error():
    with pytest.raises(StoreError, match="criteria"):
        decode(Check, {"id": "u", "run": "x"})


@pytest.mark.parametrize("points", ["x", "1/0", 3, "nan"])
def test_invalid_fraction_is_refused(points):
    with pytest.raises(StoreError, match="points"):
        decode(Criterion, {"id": "c", "text": "t", "points": points, "critical": False})


def test_value_outside_the_domain_is_refused():
    @dataclass(frozen=True)
    class Odd:
        what: bytes

    for value in (b"x", {1}, object(), Odd(b"x"), Odd):
        with pytest.raises(StoreError, match="JSON"):
            encode(value)
    with pytest.raises(StoreError, match="JSON"):
        decode(Odd, {"what": "x"})


def test_equal_texts_of_tasks_share_one_object():
    given = encode(Plan(title="p", tasks=(stored_run.task("a"), stored_run.task("b"))))

    one, other = decode(Plan, unpack(pack(given))).tasks

    assert one.worker_role == other.worker_role != ""
    assert one.worker_role is other.worker_role
