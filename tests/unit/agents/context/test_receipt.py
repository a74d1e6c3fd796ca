import json
from collections.abc import Callable, Mapping
from typing import get_args

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from mimir.agents.context.receipt import (
    ContextReceipt,
    GivenPiece,
    PieceFingerprint,
    Why,
    WithheldPiece,
    fingerprint,
    receipt_totals,
)
from mimir.errors import StoreError
from tests.support.receipt_figures import deduplication_ratio, merge_fingerprints, reduction_ratio


def given(name: str, tokens: int) -> GivenPiece:
    return GivenPiece(name=name, importance="important", tokens=tokens, hash=fingerprint(name))


def receipt(
    *pieces: GivenPiece, withheld: tuple[WithheldPiece, ...] = (), lane: str = "l"
) -> ContextReceipt:
    marks = tuple(
        PieceFingerprint(hash=p.hash, content=p.name, first_seen=lane, use_count=1) for p in pieces
    )
    return ContextReceipt(
        role="worker", lane=lane, given=pieces, withheld=withheld, fingerprints=marks
    )


def test_reduction_is_the_withheld_share_of_all_tokens():
    one = receipt(given("a", 10), withheld=(WithheldPiece(name="r", why="role", tokens=90),))
    two = receipt(given("b", 30), withheld=(WithheldPiece(name="f", why="budget", tokens=70),))
    assert reduction_ratio([one, two]) == pytest.approx(0.8)
    assert reduction_ratio([]) == 0


def test_deduplication_counts_each_piece_once_over_the_fleet():
    same = WithheldPiece(name="d", why="duplicate", tokens=10, hash=fingerprint("a"))
    role = WithheldPiece(name="r", why="role", tokens=1000)
    fleet = [
        receipt(given("a", 10), given("b", 20)),
        receipt(given("a", 10), withheld=(same, role)),
    ]
    assert deduplication_ratio(fleet) == pytest.approx(1 - 30 / 50)
    assert deduplication_ratio([]) == 0


def test_fingerprints_keep_the_first_transcript_and_count_uses():
    fleet = [receipt(given("a", 1), lane="one"), receipt(given("a", 1), given("b", 1), lane="two")]
    assert [(f.content, f.first_seen, f.use_count) for f in merge_fingerprints(fleet)] == [
        ("a", "one", 2),
        ("b", "two", 1),
    ]


def test_normalised_texts_have_one_fingerprint():
    assert fingerprint("cafe\u0301  is\nopen ") == fingerprint("caf\u00e9 is open")
    assert fingerprint("a") != fingerprint("b")


def test_receipt_is_read_back_as_it_was_written():
    withheld = (
        WithheldPiece(name="x", why="budget", tokens=3, hash="h", reference="read_file(x)"),
        WithheldPiece(name="y", why="similar", tokens=3, kept="z", text="words"),
    )
    one = receipt(given("a", 10), withheld=withheld)
    assert ContextReceipt.from_json(json.loads(json.dumps(one.as_json()))) == one
    assert one.as_json()["availableTokens"] == 16


@pytest.mark.parametrize(
    "damage",
    [
        {"role": 1},
        {"given": {}},
        {"given": ["x"]},
        {"given": [{"name": "a"}]},
        {"withheld": [{"name": "a", "why": "mood", "tokens": 1}]},
        {"withheld": [{"name": "a", "why": "role", "tokens": True}]},
    ],
)
@pytest.mark.parametrize("read", [ContextReceipt.from_json, receipt_totals])
def test_record_that_is_no_receipt_is_refused(
    read: Callable[[Mapping[str, object]], object], damage: dict[str, object]
):
    with pytest.raises(StoreError):
        read({**receipt(given("a", 1)).as_json(), **damage})


@drawn(
    st.lists(st.integers(0, 9)),
    st.lists(st.tuples(st.sampled_from(get_args(Why)), st.integers(0, 9))),
)
def test_sums_equal_those_of_the_complete_receipt(tokens, withheld):
    pieces = tuple(WithheldPiece(name="w", why=why, tokens=count) for why, count in withheld)
    one = receipt(*(given("a", count) for count in tokens), withheld=pieces)

    found = receipt_totals(one.as_json())

    assert (found.role, found.given) == (one.role, one.given_tokens)
    assert found.available == one.available_tokens
    assert found.given + sum(found.withheld.values()) == one.available_tokens
    assert dict(found.withheld) == {
        why: sum(w.tokens for w in pieces if w.why == why)
        for why in sorted({w.why for w in pieces})
    }
