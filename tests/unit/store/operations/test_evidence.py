# pyright: basic
from dataclasses import replace
from fractions import Fraction

import pytest

from mimir.domain.event import EventKind
from mimir.domain.text_hash import hash_text
from mimir.domain.verdict import CriterionResult, QCAnswer, Verdict
from mimir.errors import LeaseLost, StoreError
from mimir.qc.evidence import seal
from mimir.store.operations import claims, evidence, runs
from mimir.store.records.record_codec import PackedJson
from tests.support.stored_rows import evidence_rows
from tests.support.stored_run import start, task

CHAIN = "r1/a/1"
BODIES = [
    ("deliverable", {"tree": "t1", "changed": ["a.py", "ü"], "answerHash": "h"}),
    ("check", {"check": "unit", "phase": "after", "exitCode": 1, "kind": "flip", "seconds": 0.25, "state": "failed",
               "outputTail": "E " * 400, "again": False, "status": "x", "nested": {"a": 1}, "id": "forged"}),
    ("check", {"check": "lint", "exitCode": None, "findings": []}),
    ("verdict", {"passed": False, "score": "200/3", "criteria": [{"id": "c1"}]}),
]  # fmt: skip


@pytest.fixture
async def run(store):
    await start(store, task("a"))
    await store.write(lambda ops: claims.claim(ops, "r1", "w1", lease_seconds=300))


def sealed(bodies=BODIES, chain=CHAIN):
    return seal.extend(chain, None, bodies)


async def append(store, records, fence: int | None = 1, chain=CHAIN, task="a", attempt=1):
    return await store.write(
        lambda ops: evidence.append(ops, "r1", task, attempt, fence, chain, records)
    )


async def whole(store):
    return await store.read(lambda r: list(r.dump()))


async def test_records_are_read_back_as_sealed(store, run):
    records = sealed()
    assert await append(store, records[:1]) == 1
    assert await append(store, records[1:]) == 3

    kept = await store.read(lambda r: evidence.records(r, CHAIN))
    attempt = await store.read(lambda r: r.get("Attempt", "r1/a/1"))

    assert tuple(kept) == records
    assert (attempt["chainLength"], attempt["chainHash"]) == (4, records[-1].hash)
    assert seal.verify(CHAIN, kept, length=4, last_hash=attempt["chainHash"]) == ()
    assert await store.read(lambda r: r.neighbours("r1/a/1", ["BACKED_BY"], "out")) == [
        f"{CHAIN}#{n:05d}" for n in range(4)
    ]
    assert (await store.read(lambda r: r.get("Task", "r1/a")))["outcomes"] == 4


async def test_evidence_node_has_only_the_sealed_values(store, run):
    await append(store, sealed())

    rows = await store.read(lambda r: evidence_rows(r, CHAIN))

    assert rows == [evidence.row_of(record, CHAIN, "r1") for record in sealed()]
    shown = {k: v for k, v in rows[1].items() if k not in ("body", "previous", "hash")}
    assert shown == {
        "id": f"{CHAIN}#00001", "name": "check 1", "runId": "r1", "chain": CHAIN, "seq": 1, "kind": "check",
        "check": "unit", "phase": "after", "exitCode": 1, "checkKind": "flip", "seconds": 0.25, "state": "failed",
        "again": False, "checkStatus": "x", "checkId": "forged",
    }  # fmt: skip
    assert rows[0]["changed"] == ["a.py", "ü"]
    assert rows[2]["findings"] == []


async def test_each_check_run_has_one_event(store, run):
    await append(store, sealed())
    await append(store, sealed())

    events = [
        e for e in await store.read(lambda r: runs.events(r, "r1")) if e.kind is EventKind.CHECK_RUN
    ]

    assert [(e.task, e.attempt, e.data["check"], e.data.get("state")) for e in events] == [
        ("a", 1, "unit", "failed"),
        ("a", 1, "lint", None),
    ]
    assert events[0].data["seal"] == sealed()[1].hash


async def test_equal_records_again_change_nothing_but_the_version(store, run):
    await append(store, sealed())
    before = await store.read(
        lambda r: (evidence_rows(r, CHAIN), r.get("Task", "r1/a")["outcomes"])
    )

    assert await append(store, sealed()) == 0
    assert await append(store, sealed()[:2]) == 0

    assert (
        await store.read(lambda r: (evidence_rows(r, CHAIN), r.get("Task", "r1/a")["outcomes"]))
        == before
    )


@pytest.mark.parametrize(
    "change", [{"body": '{"check":"other"}'}, {"hash": "0"}, {"kind": "gate"}, {"previous": "0"}]
)
async def test_another_record_in_the_same_place_is_refused(store, run, change):
    records = sealed()
    await append(store, records)
    before = await whole(store)

    with pytest.raises(StoreError, match="1"):
        await append(store, [records[0], replace(records[1], **change)])

    assert await whole(store) == before


async def test_record_that_does_not_follow_is_refused(store, run):
    records = sealed()
    await append(store, records[:1])
    before = await whole(store)

    for wrong in (records[2:], [replace(records[1], previous="0")], [records[1], records[3]]):
        with pytest.raises(StoreError, match="follow"):
            await append(store, wrong)

    assert await whole(store) == before


async def test_old_fence_is_refused(store, run):
    await store.write(lambda ops: claims.claim(ops, "r1", "w2", lease_seconds=300, dead=("w1",)))
    before = await whole(store)

    with pytest.raises(LeaseLost):
        await append(store, sealed(), fence=1)

    assert await whole(store) == before
    assert await append(store, sealed(), fence=2) == 4


async def test_gate_has_a_chain_of_the_run(store, run):
    records = sealed([("check", {"check": "unit", "task": "a"}), ("gate", {"red": []})], "r1/gate")

    assert await append(store, records, None, "r1/gate", "", 0) == 2

    row = await store.read(lambda r: r.get("Run", "r1"))
    assert (row["gateLength"], row["gateHash"]) == (2, records[-1].hash)
    assert await store.read(lambda r: r.neighbours("r1", ["BACKED_BY"], "out")) == [
        "r1/gate#00000",
        "r1/gate#00001",
    ]
    (event,) = [
        e for e in await store.read(lambda r: runs.events(r, "r1")) if e.kind is EventKind.CHECK_RUN
    ]
    assert (event.task, event.data["check"]) == ("a", "unit")


async def test_chain_without_an_attempt_is_refused(store, run):
    with pytest.raises(StoreError, match="r1/a/7"):
        await append(store, sealed(chain="r1/a/7"), 1, "r1/a/7", "a", 7)


@pytest.mark.parametrize(
    "name",
    ["body", "hash", "previous", "kind", "seq", "exitCode", "check", "name", "runId", "extra"],
)
async def test_any_edit_of_a_record_or_its_node_is_found(store, run, name):
    """Verifying means: the chain's hashes, and each row equal to the one that its record makes."""
    await append(store, sealed())
    value = 9 if name in ("seq", "exitCode") else "edited"
    await store.write(lambda ops: ops.patch("Evidence", f"{CHAIN}#00001", {name: value}))

    kept = await store.read(lambda r: evidence.records(r, CHAIN))
    rows = await store.read(lambda r: evidence_rows(r, CHAIN))

    problems = seal.verify(CHAIN, kept, length=4)
    mirrored = all(
        row == evidence.row_of(record, CHAIN, "r1") for row, record in zip(rows, kept, strict=True)
    )
    assert problems or not mirrored


@pytest.mark.parametrize(
    "props", [{"body": None}, {"seq": None}, {"kind": 7}, {"body": "no json"}, {"hash": None}]
)
async def test_damaged_record_is_read_and_left_to_the_seal(store, run, props):
    await append(store, sealed())
    if "kind" in props:
        props = {"kind": None}
    await store.write(lambda ops: ops.patch("Evidence", f"{CHAIN}#00001", props))

    kept = await store.read(lambda r: evidence.records(r, CHAIN))

    assert len(kept) == 4
    assert seal.verify(CHAIN, kept, length=4)


async def test_body_with_unusual_names_and_values_is_shown_as_far_as_possible(store, run):
    body = {
        "a b": 1,
        "": 1,
        "Big": 1,
        "é": 1,
        "ok": 2**70,
        "x1": 2**63 - 1,
        "half": "\ud800",
        "list": [1],
        "hash": "h",
    }
    records = sealed([("check", body)])

    await append(store, records)

    (row,) = await store.read(lambda r: evidence_rows(r, CHAIN))
    assert {
        k
        for k in row
        if k not in ("id", "name", "runId", "chain", "seq", "kind", "body", "previous")
    } == {"x1", "half", "checkHash", "hash"}
    assert row == evidence.row_of(records[0], CHAIN, "r1")


@pytest.mark.parametrize("text", ["", "answer", "x" * 100_000, "🧊\0", "\ud800"])
async def test_artifact_is_stored_completely_with_its_hash(store, run, text):
    kept = text.replace("\ud800", "\ufffd")

    sha = await store.write(
        lambda ops: evidence.put_artifact(ops, "r1/a/1/answer", "r1", "answer", text, "r1/a/1")
    )

    row = await store.read(lambda r: r.get("Artifact", "r1/a/1/answer"))
    assert await store.read(lambda r: evidence.artifact(r, "r1/a/1/answer")) == kept
    assert (row["sha256"], row["length"], row["kind"]) == (sha, len(kept), "answer")
    assert sha == hash_text(kept)
    assert await store.read(lambda r: r.neighbours("r1/a/1", ["PRODUCED"], "out")) == [
        "r1/a/1/answer"
    ]


async def test_artifact_of_an_unknown_node_is_refused(store, run):
    await store.write(lambda ops: evidence.put_artifact(ops, "x", "r1", "note", "t"))
    with pytest.raises(StoreError, match="ghost"):
        await store.write(
            lambda ops: evidence.put_artifact(ops, "y", "r1", "note", "t", ["r1", "ghost"])
        )

    assert await store.read(lambda r: evidence.artifact(r, "x")) == "t"
    assert await store.read(lambda r: evidence.artifact(r, "y")) is None


async def test_verdict_node_has_flat_properties_and_the_whole_verdict(store, run):
    judgement = Verdict(
        passed=False, score=Fraction(200, 3), model_score=Fraction(95),
        verdict=QCAnswer(verdict="PASS", score=Fraction(95), feedback="fine \ud800", issues=("one",)),
        criteria=(CriterionResult(id="c1", text="t", state="failed", basis="executed", points=Fraction(100, 3)),),
        reasons=("check unit failed",), issues=("one", "two"), required_fixes=("mend it",),
    )  # fmt: skip

    id = await store.write(lambda ops: evidence.put_verdict(ops, "r1", "a", 1, 1, judgement))

    row = await store.read(lambda r: r.get("Verdict", id))
    assert id == "r1/a/1/verdict/1"
    assert PackedJson(row["judgementJson"]).decode(Verdict) == judgement
    assert {k: row[k] for k in ("passed", "verdict", "issues", "requiredFixes", "reasons")} == {
        "passed": False, "verdict": "PASS", "issues": ["one", "two"], "requiredFixes": ["mend it"],
        "reasons": ["check unit failed"],
    }  # fmt: skip
    assert row["score"] == pytest.approx(66.67, abs=0.01)
    assert await store.read(lambda r: r.neighbours("r1/a/1", ["HAS_VERDICT"], "out")) == [id]
