"""The sections of the report that are figures: the metrics of the run, and what each agent was given. Pure."""

from mimir.reporting.metrics import Metric, Number, Unit
from mimir.reporting.summary import Summary
from mimir.reporting.words.numbers import percent, seconds
from mimir.reporting.words.plain import cell

_MET = {True: "yes", False: "no", None: "—"}


def metrics(summary: Summary) -> str:
    """Return the table of metrics; one without inputs says why it has no value."""
    head = "| Metric | Value | Goal | Reached | Formula | Inputs |\n|---|---:|---|---|---|---|"
    note = "`docs/metrics.md` of mimir has the query behind each figure, for both stores."
    return "\n".join(["## Metrics", "", head, *map(_metric, summary.metrics), "", note])


def receipts(summary: Summary) -> str:
    """Return what each agent was given and what was withheld from it, in tokens."""
    rows = [
        f"| {cell(attempt.node)} | {cell(one.role)} | {one.given:,} | {one.available:,} | "
        f"{', '.join(f'{why} {tokens:,}' for why, tokens in one.withheld.items()) or '—'} |"
        for task in summary.tasks
        for attempt in task.history
        for one in attempt.receipts
    ]
    if not rows:
        return ""
    head = "| Attempt | Agent | Given | Available | Withheld, by reason |\n|---|---|---:|---:|---|"
    note = "Tokens by the engine's estimate; *available* is that and all that was withheld, the PM's own context included."
    return "\n".join(["## Context receipts", "", head, *rows, "", *_context(summary), note])


def _metric(one: Metric) -> str:
    value = f"n/a: {one.why}" if one.value is None else _shown(one.value, one.unit)
    inputs = ", ".join(
        f"{name.replace('_', ' ')} {_number(number)}" for name, number in one.inputs.items()
    )
    return f"| {one.name} | {value} | {one.goal} | {_MET[one.met]} | {one.formula} | {inputs} |"


def _context(summary: Summary) -> list[str]:
    used = summary.context
    if used.reduction is None:
        return []
    return [
        f"All agents together were given {used.given:,} of {used.available:,} tokens: {percent(used.reduction)} less than there was.",
        "",
    ]


def _shown(value: float, unit: Unit) -> str:
    return percent(value) if unit == "share" else seconds(value)


def _number(value: Number) -> str:
    if value is None:
        return "n/a"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
