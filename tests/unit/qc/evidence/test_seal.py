from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.evidence import EvidenceRecord
from mimir.qc.evidence import seal

CHAIN = "run-1/task-1.1/2"
BODIES = [{"check": f"c{i}", "exitCode": i, "note": "ä\n"} for i in range(5)]


def chain_of(bodies: list[dict[str, object]], name: str = CHAIN) -> tuple[EvidenceRecord, ...]:
    return seal.extend(name, None, [("check", body) for body in bodies])


def problems(
    records: list[EvidenceRecord] | tuple[EvidenceRecord, ...], **known: object
) -> list[tuple[int, str]]:
    whole = chain_of(BODIES)
    expect = {"length": len(whole), "last_hash": whole[-1].hash} | known
    return [(p.seq, p.what) for p in seal.verify(CHAIN, records, **expect)]


def test_untouched_chain_has_no_problem():
    assert problems(chain_of(BODIES)) == []
    assert [record.seq for record in chain_of(BODIES)] == [0, 1, 2, 3, 4]


def test_chain_continued_record_by_record_equals_the_one_made_at_once():
    last: EvidenceRecord | None = None
    records = []
    for body in BODIES:
        last = seal.append(CHAIN, last, "check", body)
        records.append(last)

    assert tuple(records) == chain_of(BODIES)


@pytest.mark.parametrize("seq", range(5))
@pytest.mark.parametrize(
    "edit",
    [
        {"body": '{"check":"c9"}'},
        {"kind": "verdict"},
        {"hash": "0" * 64},
    ],
)
def test_edited_record_is_named(seq, edit):
    records = list(chain_of(BODIES))
    records[seq] = replace(records[seq], **edit)

    assert seq in [p[0] for p in problems(records)]


@given(st.integers(0, 4), st.data())
def test_any_changed_character_of_a_body_is_named(seq, data):
    records = list(chain_of(BODIES))
    body = records[seq].body
    at = data.draw(st.integers(0, len(body) - 1))
    other = data.draw(st.characters(exclude_characters=body[at]))
    records[seq] = replace(records[seq], body=body[:at] + other + body[at + 1 :])

    assert [p[0] for p in problems(records)] == [seq]


@pytest.mark.parametrize("seq", range(5))
def test_deleted_record_is_named(seq):
    records = [record for record in chain_of(BODIES) if record.seq != seq]

    assert seq in [p[0] for p in problems(records)]


def test_two_records_in_each_others_place_are_named():
    records = list(chain_of(BODIES))
    records[1], records[3] = records[3], records[1]

    assert {1, 3} <= {p[0] for p in problems(records)}


def test_two_records_with_swapped_sequence_numbers_are_named():
    records = list(chain_of(BODIES))
    records[1], records[2] = replace(records[2], seq=1), replace(records[1], seq=2)

    assert {p[0] for p in problems(records)} >= {1, 2}


def test_doubled_record_is_named():
    records = list(chain_of(BODIES))

    assert (2, "record 2 is duplicated or out of place") in problems([*records[:3], *records[2:]])


@pytest.mark.parametrize("kept", range(5))
def test_cut_off_end_is_named_by_its_first_missing_record(kept):
    found = problems(chain_of(BODIES)[:kept])

    assert [p[0] for p in found] == [kept]
    assert f"{5 - kept} of 5 records are missing" in found[0][1]


def test_record_added_behind_the_sealed_ones_is_named():
    records = chain_of([*BODIES, {"check": "late"}])

    assert [p[0] for p in problems(records)] == [5]


def test_rewritten_chain_of_the_same_length_is_found_by_the_hash_written_beside_it():
    forged = chain_of([*BODIES[:4], {"check": "c4", "exitCode": 0}])

    assert [p[0] for p in problems(forged)] == [4]
    assert "is its recorded end" in problems(forged)[0][1]


def test_chain_of_another_attempt_does_not_verify_here():
    moved = chain_of(BODIES, name="run-1/task-1.1/1")

    assert 0 in [p[0] for p in problems(moved, last_hash=None)]


def test_sequence_number_of_millions_has_a_short_message():
    records = list(chain_of(BODIES))
    records[4] = replace(records[4], seq=10_000_000)

    assert 0 < len(problems(records)) < 50


def test_parts_of_a_record_cannot_be_shifted_into_each_other():
    one = seal.append(CHAIN, None, "check", {"a": "bc"})
    other = seal.append(CHAIN, None, "check", {"ab": "c"})

    assert one.hash != other.hash
    assert seal.first_link("ab") != seal.first_link("a")


def test_canonical_form_does_not_depend_on_the_order_of_keys():
    assert seal.canonical_json({"b": 1, "a": [True, None]}) == '{"a":[true,null],"b":1}'
    assert seal.canonical_json({"a": [True, None], "b": 1}) == seal.canonical_json(
        {"b": 1, "a": [True, None]}
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_number_that_json_does_not_have_is_refused(number):
    with pytest.raises(ValueError, match="Out of range"):
        seal.canonical_json({"seconds": number})


def test_half_a_surrogate_can_be_sealed_and_verified():
    records = chain_of([{"tail": "\ud800"}])

    assert seal.verify(CHAIN, records, length=1, last_hash=records[0].hash) == ()


def test_seal_of_a_run_depends_on_every_part_and_not_on_their_order():
    chains = [("task-1", 1, "aa"), ("task-2", 3, "bb")]
    whole = seal.run_seal("gate", chains)

    assert whole == seal.run_seal("gate", reversed(chains))
    others = {
        seal.run_seal("other", chains),
        seal.run_seal("gate", chains[:1]),
        seal.run_seal("gate", [("task-1", 2, "aa"), chains[1]]),
        seal.run_seal("gate", [("task-1", 1, "ab"), chains[1]]),
        seal.run_seal("gate", [("task-11", 1, "aa"), chains[1]]),
    }
    assert len(others) == 5
    assert whole not in others
