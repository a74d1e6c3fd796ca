"""Sections of the report with numbers: the metrics and the context receipts. Pure."""

from collections.abc import Iterator

from mimir.agents.context.receipt import ReceiptTotals
from mimir.reporting.render.markdown_escape import cell
from mimir.reporting.render.numbers import percent, seconds
from mimir.reporting.summary.metrics import Metric, Number, Unit
from mimir.reporting.summary.summary import RunSummary

_MET = {True: "reached", False: "outside the goal", None: "not measured"}


def metrics(summary: RunSummary) -> str:
    """Return the table of metrics; a metric without inputs states the reason."""
    head = "| Metric | Value | Goal | Result | Formula | Inputs |\n|---|---:|---|---|---|---|"
    note = "`docs/metrics.md` of mimir has the query of each metric, for both stores."
    goals = "The goals are those of long runs with many tasks. No metric decides about the outcome."
    rows = map(_metric, summary.metrics)
    return "\n".join(["## Metrics", "", head, *rows, "", goals, "", note])


def receipts_section(summary: RunSummary) -> Iterator[str]:
    """Yield the tokens that each agent was given, and those that were withheld."""
    if not any(attempt.receipts for task in summary.tasks for attempt in task.history):
        return
    head = "| Attempt | Agent | Given | Available | Withheld, by reason |\n|---|---|---:|---:|---|"
    yield from ("## Context receipts", "", head)
    for task in summary.tasks:
        for attempt in task.history:
            yield from (_receipt(attempt.node, one) for one in attempt.receipts)
    yield from ("", *_context(summary))
    yield "Tokens are estimated by the engine. *Available* means given and withheld tokens, including the PM's own context."


def _receipt(attempt: str, one: ReceiptTotals) -> str:
    withheld = ", ".join(f"{reason} {tokens:,}" for reason, tokens in one.withheld.items()) or "—"
    return (
        f"| {cell(attempt)} | {cell(one.role)} | {one.given:,} | {one.available:,} | {withheld} |"
    )


def _metric(one: Metric) -> str:
    value = f"— ({one.why})" if one.value is None else _format_value(one.value, one.unit)
    inputs = ", ".join(
        f"{name.replace('_', ' ')} {_number(number)}" for name, number in one.inputs.items()
    )
    return f"| {one.name} | {value} | {one.goal} | {_MET[one.met]} | {one.formula} | {inputs} |"


def _context(summary: RunSummary) -> list[str]:
    used = summary.context
    if used.reduction is None:
        return []
    return [
        f"All agents together were given {used.given:,} of {used.available:,} available tokens: {percent(used.reduction)} less.",
        "",
    ]


def _format_value(value: float, unit: Unit) -> str:
    return percent(value) if unit == "share" else seconds(value)


def _number(value: Number) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
