import dataclasses
import importlib
import pkgutil
from enum import Enum
from fractions import Fraction
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from mimir.agents.context.receipt import ContextReceipt, flatten_receipt
from mimir.domain.criteria_counts import count_criteria
from mimir.domain.evidence import CheckRun
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.usage import TokenUsage
from mimir.errors import StoreError
from mimir.store import records
from mimir.store.operations import runs
from mimir.store.operations.record_loading import find_records, load_record
from mimir.store.records.artifact_records import CheckRunRecord, ProcessRecord
from mimir.store.records.attempt_changes import QCContextChange, WorkerContextChange
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.audited_records import AuditedAttemptRecord, AuditedTaskRecord
from mimir.store.records.call_records import CallRecord
from mimir.store.records.record_codec import PackedJson, StoredRecord, encode, stored_names
from mimir.store.records.run_changes import RunLimitsChange, RunPauseChange
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_changes import CompletionChange, CriteriaCountsChange, RetryChange
from mimir.store.records.task_records import TaskRecord, TaskStatusRecord
from mimir.store.schema import PHASES, accept
from tests.support.stored_rows import run_row
from tests.support.stored_run import new_run, plan, start, task

ATTEMPT = {"id": "r/t/1", "taskId": "t", "seq": 1, "status": "qc_passed"}

READ_OUTSIDE_THE_STORE = {
    "Run": (
        "appliedAt applyJson baseCommit baseTree callsUsed claimsEmpty coordinator costUsed createdAt engineVersion eventSeq "
        "finalCommit finishedAt fromRun gateRedJson goal head headTree id ignoreRules integrator isExchanged kind "
        "learnedJson maxCalls maxCost maxTokens modelsJson name only outcome parentRun pauseMessage pauseReason planJson "
        "planPath planRun pricesJson projectId request sandbox seal secondsUsed sessionId settingsJson status "
        "timeLimitSeconds title tokensUsed unpriced userBranch userHead"
    ),
    "Task": (
        "acceptedAttempt attemptNumber blockedBy cause dependencies estimatedToolCalls expiresAt fence filesChanged "
        "firstBaseTree heldSeconds id integratedCommit integratedTree integrationRetries lockedBy maxRetries passedChecks "
        "priority qcFailuresCount qcFeedback qcIssues qcPassed qcScore qcVerificationHistoryJson released retryErrorContextJson "
        "runId seq status takenFrom taskId title workerDuration workerMessageCount workerOutput workerTokens "
        "workerToolCalls criteriaExecuted criteriaJudged criteriaUnverified criteriaFailed criteriaOpen checkResults"
    ),
    "Attempt": (
        "answerHash answerText chainHash chainLength checksJson contextPieces contextTokens contextTokensAvailable "
        "endCause estimatedContextTokens id isRetry issues judged judgementJson note preambleHash qcContextPieces "
        "qcContextTokens qcContextTokensAvailable qcPassed qcReceiptJson qcScore receiptJson requiredFixes runId score "
        "seq startJson status takenFrom taskId tree tripJson tripped workJson workerCompletedAt workerDuration "
        "workerOutput workerStartTime"
    ),
    "Call": (
        "deltaJson done finishedAt hash id inputTokens kind lane name outputTokens requestHash runId seq startedAt tool "
        "tree valueJson"
    ),
    "Artifact": (
        "agents busySeconds by claimed createdAt empty host id kind leftAt length lost lockFile owner process "
        "runId seenAt servedSeconds sha256 since text timeoutSeconds tries until"
    ),
    "Verdict": "attemptNumber id judgementJson passed score seq taskId",
}  # fmt: skip
"""Label → properties that modules above the store read before they used records. An attempt's `attemptNumber` is its `seq`."""


SAMPLES = {
    str: "x", int: 1, float: 0.5, bool: True, object: "as it is stored", PackedJson: PackedJson("{}"), tuple[str, ...]: ("x",),
}  # fmt: skip


def record_classes():
    names = [info.name for info in pkgutil.iter_modules(records.__path__, records.__name__ + ".")]
    found = [getattr(m, n) for m in map(importlib.import_module, names) for n in vars(m)]
    kinds = {one for one in found if isinstance(one, type) and issubclass(one, StoredRecord)}
    return sorted(kinds - {StoredRecord}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("label", READ_OUTSIDE_THE_STORE)
def test_every_property_that_is_read_outside_the_store_has_a_field(label):
    covered = {
        name
        for kind in record_classes()
        if kind.label.value == label
        for name in stored_names(kind)
    }

    assert set(READ_OUTSIDE_THE_STORE[label].split()) <= covered


@pytest.mark.parametrize("kind", record_classes(), ids=lambda kind: kind.__name__)
def test_record_is_frozen_slotted_and_keyword_only(kind):
    with pytest.raises(dataclasses.FrozenInstanceError):
        object.__new__(kind).label = ""
    assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)
    assert all(field.kw_only for field in dataclasses.fields(kind))


@pytest.mark.parametrize("kind", record_classes(), ids=lambda kind: kind.__name__)
def test_no_two_fields_share_a_stored_name(kind):
    names = stored_names(kind)

    assert len(names) == len(set(names))


def test_names_of_change_records_are_those_of_their_phases():
    assert set(stored_names(RetryChange)) - {
        "isRetry",
        "qcFailuresCount",
        "integrationRetries",
    } == set(PHASES[7])
    assert {"integratedAt", "integratedCommit", "totalAttempts"} <= set(
        stored_names(CompletionChange)
    )


def test_names_of_criteria_counts_are_read_by_the_task_records():
    names = {"criteriaExecuted", "criteriaJudged", "criteriaUnverified", "criteriaFailed"}
    assert names <= set(stored_names(TaskStatusRecord))
    assert {*names, "criteriaOpen"} == set(stored_names(CriteriaCountsChange))
    assert "criteriaOpen" in stored_names(TaskRecord)


async def test_new_run_and_its_tasks_are_read_as_records(store):
    new = new_run(plan(task("a"), task("b", "a")), max_calls=10, only=("b",))
    await store.write(lambda ops: runs.create(ops, new))

    run = RunRecord.from_row(await store.read(lambda r: run_row(r, "r1")))
    found = await store.read(lambda r: find_records(r, TaskRecord, {"runId": "r1"}, order=("seq",)))

    assert (run.status, run.max_calls, run.max_tokens, run.only) == (
        RunStatus.RUNNING,
        10,
        None,
        ("b",),
    )
    assert run.settings.mapping() == new.settings
    assert run.plan.decode(type(new.plan)) == new.plan
    assert [(t.task_id, t.place, t.dependencies, t.status) for t in found] == [
        ("a", 0, (), TaskStatus.PENDING), ("b", 1, ("a",), TaskStatus.PENDING),
    ]  # fmt: skip


async def test_projection_reads_its_own_properties_alone(store):
    await start(store, task("a"))
    asked = []

    class Watched:
        def find(self, label, where, **options):
            asked.append(options["only"])
            return []

    find_records(Watched(), TaskStatusRecord, {"runId": "r1"})
    find_records(Watched(), TaskRecord, {"runId": "r1"})
    found = await store.read(lambda r: find_records(r, TaskStatusRecord, {"runId": "r1"}))

    assert asked == [stored_names(TaskStatusRecord), ()]
    assert [one.title for one in found] == [task("a").title]


async def test_missing_node_is_none(store):
    assert await store.read(lambda r: load_record(r, RunRecord, "nowhere")) is None


def test_absent_properties_have_defaults():
    attempt = AttemptRecord.from_row(ATTEMPT)

    assert (attempt.score, attempt.issues, attempt.judged) == (None, (), False)
    assert not attempt.deliverable
    assert attempt.receipt.mapping() == {}
    assert attempt.receipt.texts() == ()


def test_invalid_record_is_refused_with_every_error():
    row = {"id": "r/t/1", "taskId": "t", "seq": "1", "status": "gone"}

    with pytest.raises(StoreError) as refused:
        AttemptRecord.from_row(row)

    message = str(refused.value)
    assert message.startswith("The stored record of attempt 'r/t/1' is invalid (2 errors).")
    assert "Property 'seq' must be a whole number, not '1'." in message
    assert "mimir verify" in refused.value.next_step


def test_one_missing_property_is_one_error():
    with pytest.raises(StoreError, match=r"invalid \(1 error\)\. Property 'taskId' is missing\."):
        AttemptRecord.from_row({"id": "r/t/1", "seq": 1, "status": "pending"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("seq", True), ("isRetry", "yes"), ("score", "85"), ("score", True), ("issues", "x"), ("workJson", 5)],
)  # fmt: skip
def test_value_of_a_wrong_type_is_an_error(name, value):
    with pytest.raises(StoreError, match=f"Property '{name}' must be"):
        AttemptRecord.from_row({**ATTEMPT, name: value})


def test_json_is_decoded_on_demand_and_names_its_property_when_damaged():
    attempt = AttemptRecord.from_row({**ATTEMPT, "receiptJson": '{"a":', "tripJson": "[1]"})

    with pytest.raises(StoreError, match="Property 'receiptJson' of 'r/t/1' cannot be read"):
        attempt.receipt.mapping()
    with pytest.raises(StoreError, match="Property 'tripJson' of 'r/t/1' cannot be read"):
        attempt.trip.mapping()


def test_audit_reads_damaged_values_as_they_are_stored():
    row = {**ATTEMPT, "seq": "1", "status": 7, "qcScore": "85", "chainLength": "x"}

    attempt = AuditedAttemptRecord.from_row(row)
    audited = AuditedTaskRecord.from_row(
        {"id": "r/t", "taskId": 5, "status": "gone", "criteriaFailed": "1"}
    )

    assert (attempt.number, attempt.status, attempt.qc_score, attempt.evidence_length) == (
        -1,
        7,
        "85",
        None,
    )
    assert (audited.task_id, audited.status, audited.criteria_failed) == ("", "gone", "1")


def test_packed_value_is_read_as_it_was_written():
    ran = CheckRun(check="c", argv=("true",), phase="after", tree="t", exit_code=0)
    row = {"id": "r#check-1", "text": PackedJson.pack(ran).text, "by": "t/1"}

    record = CheckRunRecord.from_row(row)

    assert record.check_run() == ran
    assert record.place == "t/1"


def test_packed_json_is_equal_for_equal_values():
    attempt = AttemptRecord.from_row({**ATTEMPT, "receiptJson": "{}"})

    assert attempt.receipt == PackedJson("{}")


def test_change_is_written_under_the_stored_names():
    change = RetryChange(
        next_attempt_number=2, retry_reason="qc_failure", retry_error_context=PackedJson.pack({"a": 1}),
        retry_prepared_at="2026", qc_failures_count=1, integration_retries=0,
    )  # fmt: skip

    assert encode(change) == {
        "nextAttemptNumber": 2, "retryReason": "qc_failure", "retryErrorContextJson": '{"a":1}',
        "retryPreparedAt": "2026", "isRetry": True, "qcFailuresCount": 1, "integrationRetries": 0,
    }  # fmt: skip


def test_none_is_left_out_of_a_change_that_skips_it():
    limits = RunLimitsChange(max_tokens=5)

    assert encode(limits) == {"maxTokens": 5}
    assert encode(RunPauseChange()) == {"pauseReason": None, "pauseMessage": None}


def test_several_changes_of_one_node_are_written_together():
    counts = count_criteria([("passed", "executed"), ("failed", "judged")])

    assert encode(RunLimitsChange(max_calls=1), RunPauseChange(pause_reason="budget")) == {
        "maxCalls": 1, "pauseReason": "budget", "pauseMessage": None,
    }  # fmt: skip
    assert encode(CriteriaCountsChange.of_counts(counts)) == {
        "criteriaExecuted": 1, "criteriaJudged": 0, "criteriaUnverified": 0, "criteriaFailed": 1, "criteriaOpen": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "prefix"), [(WorkerContextChange, ""), (QCContextChange, "qc")])
def test_context_figures_are_stored_as_the_receipt_names_them(kind, prefix):
    assert set(stored_names(kind)) == set(
        flatten_receipt(ContextReceipt(role="worker", lane="l", given=()), prefix)
    )


@pytest.mark.parametrize("kind", record_classes(), ids=lambda kind: kind.__name__)
def test_encoded_record_is_accepted_by_every_store_and_read_again(kind):
    hints = get_type_hints(kind)
    made = kind(**{name: _sample(hints[name]) for name in names_of_fields(kind)})

    row = accept(encode(made), partly="id" not in hints)

    assert kind.from_row(row) == made


def names_of_fields(kind):
    return [field.name for field in dataclasses.fields(kind)]


def _sample(hint):
    """Return a value of a field's type."""
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    return SAMPLES[hint]


def test_call_has_its_usage_only_if_the_provider_counted():
    row = {"id": "l#0", "kind": "model", "lane": "l", "seq": 0, "valueJson": '{"text":"hi"}'}

    assert CallRecord.from_row(row).usage is None
    counted = CallRecord.from_row({**row, "inputTokens": 3, "outputTokens": 2})
    assert counted.outcome.usage == TokenUsage(input_tokens=3, output_tokens=2)
    assert counted.outcome.value == {"text": "hi"}


def test_process_is_read_from_its_registration():
    row = {"id": "r#worker/w1", "owner": "w1", "process": 7, "busySeconds": 1.5, "leftAt": None}

    process = ProcessRecord.from_row(row)

    assert (process.number, process.busy_seconds, process.left_at) == (7, 1.5, "")


def test_fractions_survive_packed_json():
    assert PackedJson.pack(Fraction(1, 3)).decode(Fraction) == Fraction(1, 3)
