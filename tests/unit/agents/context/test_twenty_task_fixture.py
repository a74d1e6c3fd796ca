"""Figures of the receipts of a named fleet, as the documentation prints them."""

import re
from pathlib import Path

from mimir.agents.context.receipt import (
    ContextReceipt,
    flatten_receipt,
)
from mimir.agents.context.task_context import PlannerKnowledge
from mimir.domain.plan import Plan
from mimir.reporting.summary.metric_tally import MetricTally
from mimir.reporting.summary.metrics import NOTHING, context_use, metrics
from mimir.reporting.summary.run_loader import load_attempt
from mimir.store.records.attempt_records import AttemptRecord
from tests.support import twenty_task_fixture as fixture
from tests.support.receipt_figures import deduplication_ratio, merge_fingerprints, reduction_ratio

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "metrics.md"


def documented(figure: str) -> str:
    found = re.search(rf"^\| {re.escape(figure)} \| (\S+ %) \|", DOCUMENT.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def percent(share: float) -> str:
    return f"{share * 100:.2f} %"


def test_documented_figures_equal_the_measured_ones():
    receipts = fixture.fleet()
    workers = [one for one in receipts if one.role == "worker"]
    assert len(receipts) == 46
    assert documented("reduction, all 46 agents") == percent(reduction_ratio(receipts))
    assert documented("reduction, workers") == percent(reduction_ratio(workers))
    assert documented("deduplication over the fleet") == percent(deduplication_ratio(receipts))


def test_report_computes_the_ratios_of_the_receipts_from_properties():
    receipts = fixture.fleet()
    tally, node = MetricTally(), {"id": "r/t/1", "taskId": "t", "seq": 1, "status": "completed"}
    for one in receipts:
        record = AttemptRecord.from_row({**node, **flatten_receipt(one)})
        tally.add_attempt(load_attempt(record, 0, {}))
    measured = tally.inputs(NOTHING, ())
    assert metrics(measured)[0].value == round(deduplication_ratio(receipts), 6)
    assert context_use(measured).reduction == round(reduction_ratio(receipts), 6)
    assert {name for row in map(flatten_receipt, receipts, ["qc"] * 46) for name in row} >= {
        "qcContextTokens", "qcContextTokensAvailable", "qcContextPieces",
    }  # fmt: skip


def test_a_piece_that_many_are_given_is_one_fingerprint_with_its_uses():
    found = [
        one
        for one in merge_fingerprints(fixture.fleet())
        if one.content.startswith("def accounts_0")
    ]
    shared = max(found, key=lambda one: one.use_count)
    assert shared.first_seen == "run/task-0/1/worker"
    assert shared.use_count > 20


def test_a_receipt_does_not_grow_with_the_plan():
    def lines(tasks: int) -> int:
        plan = Plan(title="x", tasks=tuple(map(fixture.task, range(20))) * tasks, reasoning="r")
        return len(PlannerKnowledge.from_plan(plan, fixture.planner()).hidden_from(plan.tasks[0]))

    assert lines(1) == lines(50) == len(fixture.planner().given) + 2


def test_content_withheld_for_the_role_is_absent_from_the_context():
    receipt: ContextReceipt = fixture.worker(19, 1).receipt
    hidden = {one.name for one in receipt.withheld if one.why == "role"}
    assert {"plan:reasoning", "plan:goal", "pm:research", "19 other tasks"} <= hidden
    text = fixture.worker(19, 1).text
    assert fixture.PLAN.reasoning[:60] not in text
    assert fixture.PLAN.tasks[2].prompt[:40] not in text
