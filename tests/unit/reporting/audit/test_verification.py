"""Any change after the seal is named by its record; unchanged rows are not."""

from collections.abc import Sequence
from functools import partial

import pytest

from mimir.domain.task_states import RunStatus
from mimir.errors import UsageError
from mimir.reporting.audit import chain_audit
from mimir.reporting.audit.audit_data import load_audit_data
from mimir.reporting.audit.verification import verify
from mimir.store.operations import audit_loading
from mimir.store.protocol import ReadOps, Row, WriteOps
from tests.support import small_history, small_run, small_runs
from tests.support.small_run import RUN, SmallRun
from tests.support.tampering import doctored, in_json, patch, problems, sql

ONE = f"{RUN}/task-1/2"
"""The accepted attempt of `task-1`; its chain: deliverable, two runs of its check, verdict, the run on the merged tree."""


# Unchanged parts


async def test_untouched_run_is_verified_with_all_its_records(whole):
    row = await whole.store.read(lambda reads: reads.get("Run", RUN))

    found = await verify(whole.store, whole.history, RUN, row["seal"])

    assert found.problems == ()
    assert (found.ok, found.run, found.records, found.seal) == (True, RUN, 16, row["seal"])


async def test_untouched_completed_run_is_verified(done):
    assert await problems(done) == ()


async def test_verifying_changes_nothing(done):
    before = await done.store.read(lambda reads: list(reads.dump()))
    await problems(done)
    assert await done.store.read(lambda reads: list(reads.dump())) == before


async def test_run_under_way_is_verified_at_each_of_its_steps(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    claim = await run.claim("task-1")
    assert await problems(run) == ()
    work = await run.work(claim, "It works.", ("limiter.py",))
    assert await problems(run) == ()
    outcomes = await run.check(claim, work, 1, 0)
    assert await problems(run) == ()
    verdict = small_run.opinion("PASS", 90, "", c1="passed", c2="unverified")
    ruled = await run.judge(claim, work, outcomes, verdict)
    assert await problems(run) == ()
    await run.complete(claim, work, ruled)
    found = await verify(store, run.history, RUN)
    assert (found.problems, found.seal, found.records) == ((), "", 4)


async def test_gate_that_was_passed_again_after_a_crash_is_verified(store, frozen_clock):
    run = SmallRun(store, frozen_clock, plan=small_runs.TWO)
    await run.create()
    await small_runs.answered(run, "task-0")
    await small_runs.retried(run)
    await run.gate(
        ("task-1", 1), ("task-1", 1), red=[{"task": "task-1", "check": "unit", "merge": ""}]
    )
    await run.gate(("task-1", 1), ("task-1", 0))
    await run.end(RunStatus.COMPLETED)

    assert await problems(run) == ()


async def test_run_that_is_not_there_is_a_usage_error(whole):
    with pytest.raises(UsageError, match="run-2"):
        await verify(whole.store, whole.history, "run-2")


# Records


def evidence_rows(chain: chain_audit.EvidenceChain, reads: ReadOps) -> list[Row]:
    return reads.find("Evidence", {"runId": RUN, "chain": chain.name}, order=("seq",))


def problems_of(chain: chain_audit.EvidenceChain, rows: Sequence[Row]) -> list[str]:
    """Audit a chain whose nodes were changed."""
    again = chain_audit.chain_of(
        chain.name,
        [audit_loading.decode_evidence(row, RUN) for row in rows],
        length=chain.length,
        last_hash=chain.last_hash,
        linked=chain.linked,
    )
    return list(chain_audit.problems(again))


@pytest.mark.parametrize("name", ["body", "previous", "hash"])
async def test_any_byte_of_any_record_changes_the_seal(whole, name):
    data = await whole.store.read(partial(load_audit_data, run=RUN))
    for chain in data.chains.values():
        rows = await whole.store.read(partial(evidence_rows, chain))
        for place, row in enumerate(rows):
            text = row[name]
            for at in range(0, len(text), 7):
                other = "0" if text[at] != "0" else "1"
                changed = {**row, name: text[:at] + other + text[at + 1 :]}
                found = problems_of(chain, [*rows[:place], changed, *rows[place + 1 :]])
                assert any(p.startswith(f"{row['id']}: ") for p in found), (row["id"], name, at)


async def test_each_property_of_each_record_counts(whole):
    """Every mirrored value is changed a little, its type included; nothing of a node may differ from its record."""
    data = await whole.store.read(partial(load_audit_data, run=RUN))
    for chain in data.chains.values():
        stored = await whole.store.read(partial(evidence_rows, chain))
        for place, row in enumerate(stored):
            for name, value in row.items():
                if name == "id":
                    continue
                for other in (
                    None,
                    f"{value}x",
                    1 if value is True else 0 if value is False else 7.5,
                ):
                    rows = [dict(r) for r in stored]
                    rows[place][name] = other
                    assert problems_of(chain, rows), (row["id"], name, other)


async def test_edited_body_is_named(done):
    found = await doctored(
        done, in_json("Evidence", f"{ONE}#00002", "body", lambda body: body.update(exitCode=1))
    )
    assert f"{ONE}#00002: record 2 was changed: its hash is not that of its body" in found


async def test_edited_mirror_of_a_record_is_named(done):
    found = await doctored(done, patch("Evidence", f"{ONE}#00001", exitCode=0))
    assert found == (f"{ONE}#00001: property 'exitCode' was changed; it differs from the record",)


async def test_added_property_of_a_record_is_named(done):
    found = await doctored(done, patch("Evidence", f"{ONE}#00001", note="fine"))
    assert found == (f"{ONE}#00001: property 'note' was changed; it differs from the record",)


async def test_deleted_record_is_named(done):
    found = await doctored(done, lambda ops: ops.delete("Evidence", [f"{ONE}#00001"]))
    assert f"{ONE}#00001: record 1 is missing or out of place" in found


async def test_swapped_records_are_named(done):
    def doctor(ops: WriteOps) -> None:
        one, two = (dict(ops.get("Evidence", f"{ONE}#{seq:05d}")) for seq in (1, 2))
        ops.delete("Evidence", [one["id"], two["id"]])
        ops.upsert(
            "Evidence", [{**one, "id": two["id"], "seq": 2}, {**two, "id": one["id"], "seq": 1}]
        )
        ops.link("BACKED_BY", [(ONE, one["id"]), (ONE, two["id"])])

    found = await doctored(done, doctor)

    assert any(problem.startswith(f"{ONE}#00001: ") for problem in found)
    assert any(problem.startswith(f"{ONE}#00002: ") for problem in found)


async def test_swapped_order_numbers_are_named(done):
    def doctor(ops: WriteOps) -> None:
        ops.patch("Evidence", f"{ONE}#00001", {"seq": 2})
        ops.patch("Evidence", f"{ONE}#00002", {"seq": 1})

    found = await doctored(done, doctor)

    assert any(problem.startswith(f"{ONE}#00001: ") for problem in found)


async def test_truncated_chain_is_named(done):
    found = await doctored(done, lambda ops: ops.delete("Evidence", [f"{ONE}#00004"]))
    assert f"{ONE}#00004: 1 of 5 records are missing, the first of them record 4" in found


async def test_truncated_chain_whose_length_was_put_right_does_not_give_the_run_seal(done):
    def doctor(ops: WriteOps) -> None:
        ops.delete("Evidence", [f"{ONE}#00004"])
        last = ops.get("Evidence", f"{ONE}#00003")["hash"]
        ops.patch("Attempt", ONE, {"chainLength": 4, "chainHash": last})

    found = await doctored(done, doctor)

    assert [problem for problem in found if problem.startswith(f"{RUN}: property 'seal'")]


async def test_truncated_gate_is_named(done):
    found = await doctored(done, lambda ops: ops.delete("Evidence", [f"{RUN}/gate#00001"]))
    assert any(problem.startswith(f"{RUN}/gate#00001: ") for problem in found)
    assert f"{RUN}/gate: the run is 'completed', but no final gate is sealed" in found


async def test_forgotten_length_of_a_chain_is_named(done):
    found = await doctored(done, patch("Attempt", ONE, chainLength=None, chainHash=None))
    assert f"{ONE}: its node does not say how long its chain is; it was changed" in found


async def test_record_that_was_moved_to_another_chain_is_named(done):
    found = await doctored(done, patch("Evidence", f"{ONE}#00002", chain=f"{RUN}/task-9/1"))
    assert f"{ONE}#00002: it belongs to no chain of this run" in found
    assert f"{ONE}#00002: record 2 is missing or out of place" in found


async def test_record_without_its_edge_is_named(done, tmp_path):
    sql(tmp_path, "DELETE FROM edges WHERE target = ?", f"{ONE}#00002")
    assert await problems(done) == (f"{ONE}#00002: the edge that leads to it is gone",)


@pytest.mark.parametrize("label", ["Evidence", "Attempt", "Task", "Artifact", "Verdict"])
async def test_node_that_cannot_be_read_is_named_and_hides_no_other(done, tmp_path, label):
    id = {
        "Evidence": f"{ONE}#00002",
        "Attempt": ONE,
        "Task": f"{RUN}/task-1",
        "Artifact": f"{ONE}/answer",
        "Verdict": f"{ONE}/verdict/1",
    }[label]
    sql(tmp_path, "UPDATE nodes SET props = '{' || props WHERE id = ?", id)
    await done.store.write(patch("Evidence", f"{RUN}/task-0/1#00000", kind="verdict"))

    found = await problems(done)

    assert f"{id}: it cannot be read; it was changed" in found
    assert any(problem.startswith(f"{RUN}/task-0/1#00000: ") for problem in found)


async def test_byte_that_is_no_text_is_named(done, tmp_path):
    flipped = "UPDATE nodes SET props = CAST(replace(CAST(props AS BLOB), 'bubblewrap', x'ff6a6b') AS TEXT) WHERE id = ?"
    sql(tmp_path, flipped, f"{ONE}#00002")

    found = await problems(done)

    assert any(problem.startswith(f"{ONE}#00002: ") for problem in found)


async def test_run_that_cannot_be_read_is_named(done, tmp_path):
    sql(tmp_path, "UPDATE nodes SET props = 'x' WHERE id = ?", RUN)
    assert await problems(done) == (f"{RUN}: it cannot be read; it was changed",)


async def test_property_of_another_type_is_a_problem_and_no_crash(done, tmp_path):
    for label, id, name in (
        ("Task", f"{RUN}/task-1", "acceptedAttempt"),
        ("Task", f"{RUN}/task-1", "passedChecks"),
        ("Attempt", ONE, "workJson"),
        ("Attempt", ONE, "chainLength"),
        ("Run", RUN, "seal"),
        ("Run", RUN, "finalCommit"),
        ("Artifact", f"{ONE}/answer", "text"),
    ):
        before = await done.store.read(lambda reads, label=label, id=id: reads.get(label, id))
        found = await doctored(done, patch(label, id, **{name: True}))
        assert found, (label, name)
        await done.store.write(patch(label, id, **{name: before[name]}))
    assert await problems(done) == ()


# Deliverables


async def test_edited_answer_is_named(done):
    found = await doctored(done, patch("Artifact", f"{ONE}/answer", text="It never refills."))
    assert f"{ONE}/answer: it was changed; it is not the answer that {ONE}#00000 sealed" in found


async def test_edited_hash_of_an_answer_is_named(done):
    found = await doctored(done, patch("Artifact", f"{ONE}/answer", sha256="0" * 64))
    assert found == (f"{ONE}/answer: its noted hash or length is not that of its text",)


async def test_deleted_answer_is_named(done):
    found = await doctored(done, lambda ops: ops.delete("Artifact", [f"{ONE}/answer"]))
    assert f"{ONE}/answer: the answer is gone; {ONE}#00000 sealed it" in found


async def test_answer_that_a_row_shows_otherwise_is_named(done):
    found = await doctored(done, patch("Attempt", ONE, workerOutput="All is well."))
    assert found == (
        f"{ONE}: property 'workerOutput' is not the answer that stands in {ONE}/answer",
    )


async def test_edited_answer_of_a_run_under_way_is_named_before_it_is_sealed(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    claim = await run.claim("task-1")
    await run.work(claim, "It works.", ("limiter.py",))

    found = await doctored(run, patch("Artifact", f"{RUN}/task-1/1/answer", text="It fails."))

    assert any(p.startswith(f"{RUN}/task-1/1/answer: it was changed") for p in found)


async def test_damaged_object_is_named_by_the_record_that_leads_to_it(done):
    tree = small_history.object_id(f"tree {ONE}")
    done.history.damaged[tree] = "blob 0123456789ab (limiter.py) was changed"

    found = await problems(done)

    assert found == (f"{ONE}#00000: blob 0123456789ab (limiter.py) was changed",)


async def test_damaged_object_is_named_once_though_many_records_lead_to_it(done):
    for id in (done.base_tree, small_history.object_id(f"tree {ONE}")):
        done.history.damaged[id] = "blob 0123456789ab (old.py) was changed"

    assert await problems(done) == (
        f"{RUN}/task-0/1#00000: blob 0123456789ab (old.py) was changed",
    )


async def test_missing_git_object_is_named_by_its_record(done):
    done.history.trees_there.discard(small_history.object_id(f"tree merge {ONE}"))
    found = await problems(done)
    assert found[0].startswith(f"{ONE}#00004: the tree ")
    assert found[0].endswith("that it names is missing or was changed")


async def test_commit_that_holds_another_tree_is_named(done):
    commit = small_history.object_id(f"commit {ONE}")
    done.history.commits[commit] = (done.base_tree, "")

    (found,) = await problems(done)

    assert found.startswith(f"{ONE}#00000: commit {commit[:12]} does not hold the tree")
