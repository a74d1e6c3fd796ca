"""Decisions of a run: limits, retries, unsupported claims, refused calls, warnings. Pure.

`text` is written by the engine; `detail` quotes models, plans and commands, and is shown as a quotation.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from mimir.domain.event import Event, EventKind
from mimir.domain.json_value import as_text, as_texts
from mimir.domain.value_class import value_class
from mimir.reporting.summary.proofs import CheckLine
from mimir.reporting.summary.run_data import AttemptData, TaskData, without_places
from mimir.reporting.summary.task_lines import describe_trip

MOST_TITLES = 5
"""Refused calls of one agent that are listed."""
MOST_CLAIM = 200
"""Characters of a worker's claim."""

_CLAIM = re.compile(
    r"\b(pass(es|ed|ing)?|green|succe(ed|eds|eded|ss|ssful|ssfully)|works?|working|fixed|done|"
    r"complete[sd]?|correct(ly)?|implemented|ready|verified)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(not|no|fail\w*|cannot|unable|without|red)\b|n't\b", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


@value_class
class ReportedDecision:
    """One decision of the engine, or one thing that it caught."""

    kind: str
    """`breaker`, `retry`, `integration`, `claim`, `overruled`, `left_out`, `protected`,
    `denied`, `merged`, `lane_cut`, `resumed`, `preamble`, `applied`."""
    task: str
    """Empty: it concerns the run."""
    attempt: int
    """0: no attempt."""
    text: str
    detail: tuple[str, ...] = ()


def group_by_attempt(events: Iterable[Event]) -> dict[tuple[str, int], list[Event]]:
    """Return the refused calls and retries of each attempt, by task and number."""
    found: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        if event.kind in (EventKind.TOOL_DENIED, EventKind.TASK_RETRIED):
            found.setdefault((event.task, event.attempt), []).append(event)
    return found


def list_attempt_decisions(
    task: TaskData, attempt: AttemptData, events: Sequence[Event]
) -> Iterator[ReportedDecision]:
    """Yield the decisions on an attempt; `events`: its refused calls and retries."""
    decisions = (
        *_list_limits(attempt),
        *_list_overruled(attempt),
        *_list_refused_calls(events),
        *(_describe_retry(event) for event in events if event.kind is EventKind.TASK_RETRIED),
    )
    for kind, text, detail in decisions:
        yield ReportedDecision(
            kind=kind, task=task.id, attempt=attempt.number, text=text, detail=tuple(detail)
        )


def merge_decision(task: TaskData) -> ReportedDecision:
    """Return the decision that a task was merged with the changes of others."""
    text = "It was merged with the changes of other tasks. Its checks ran again on the merged tree."
    return ReportedDecision(kind="merged", task=task.id, attempt=task.accepted, text=text)


def collect_warnings(
    sandbox: str, events: Iterable[Event], checks: Iterable[CheckLine], notes: Iterable[str]
) -> tuple[str, ...]:
    """Return the warnings for the user, each once."""
    found: list[str] = []
    if sandbox == "none":
        found.append(
            'Commands and checks ran without a sandbox, as the setting `sandbox = "none"` says.'
        )
    messages = (as_text(e.data.get("message")) for e in events if e.kind is EventKind.WARNING)
    found += map(without_places, messages)
    for check in checks:
        place = f"Check {check.check!r} of {check.task}"
        found += (f"{place}: {finding}" for finding in check.findings)
        # An attempt can write a check that always passes.
        if check.self_authored:
            found.append(f"{place}: the attempt that it judges wrote its files.")
    return tuple(dict.fromkeys(text for text in (*found, *notes) if text))


def claim_of(answer: str) -> str:
    """Return the first sentence of an answer that claims success; empty: none does."""
    for sentence in _SENTENCES.split(answer):
        words = " ".join(sentence.split())
        if _CLAIM.search(words) and not _DENIAL.search(words):
            return words if len(words) <= MOST_CLAIM else f"{words[:MOST_CLAIM]}…"
    return ""


_Decision = tuple[str, str, Sequence[str]]
"""(kind, text, detail)."""


def _list_limits(attempt: AttemptData) -> Iterator[_Decision]:
    """Yield the trip of the circuit breaker, and the claims that do not hold."""
    judgement, work = attempt.judgement, attempt.work
    if attempt.trip:
        text = "The circuit breaker tripped. The worker gave its closing answer without tools, and it was judged like any other."
        yield "breaker", text, [describe_trip(attempt)]
    unsupported = judgement.unsupported_claims if judgement else work.unsupported if work else ()
    if unsupported:
        yield "claim", "The worker cited text that its tool calls do not contain.", unsupported
    # An optional check that fails is no contradiction to a claim.
    failed = [o for o in attempt.outcomes if o.required and o.state == "failed"]
    claim = claim_of(work.answer) if work and failed else ""
    if claim:
        ends = (f"check {o.check}: {(o.again or o.after).describe_end}" for o in failed)
        yield (
            "claim",
            "The worker claimed success, but a required check failed.",
            (claim, *ends),
        )


def _list_overruled(attempt: AttemptData) -> Iterator[_Decision]:
    """Yield a QC answer that the engine did not accept, and changes that it undid."""
    judgement, work = attempt.judgement, attempt.work
    if judgement and judgement.verdict.verdict == "PASS" and not judgement.passed:
        score = f"{float(judgement.model_score):.4g}"
        yield (
            "overruled",
            f"QC said PASS with {score}; the engine did not accept it.",
            judgement.reasons,
        )
    if work and work.left_out:
        text = "Changes outside the task's files were left out of the deliverable."
        yield "left_out", text, work.left_out
    if work and work.protected:
        text = "Protected files were changed. They were restored before the checks ran."
        yield "protected", text, work.protected


def _describe_retry(event: Event) -> _Decision:
    reason, issues = as_text(event.data.get("reason")), as_texts(event.data.get("issues"))
    if reason == "integration":
        why = "It was accepted but had" if event.data.get("onto") else "It left unsettled"
        text = (
            f"{why} a merge conflict. It was retried from the merged tree and used up no attempt."
        )
        return "integration", text, issues
    if reason == "rejected":
        text = "It was accepted, but the user had answered otherwise than it assumed. It was tried again and used up no attempt."
        return "rejected", text, issues
    return "retry", f"It was not accepted ({reason}) and was retried with the findings.", issues


def _list_refused_calls(events: Iterable[Event]) -> Iterator[_Decision]:
    titles: dict[str, list[str]] = {}
    for event in events:
        if event.kind is EventKind.TOOL_DENIED:
            data = event.data
            title = as_text(data.get("title")) or as_text(data.get("tool"))
            titles.setdefault(as_text(data.get("role")) or "worker", []).append(title)
    for role, refused in sorted(titles.items()):
        text = f"Refused tool calls of its {role}: {len(refused)}. The agent received the reason."
        # Bounded: an agent can repeat a refused call many times.
        yield "denied", text, refused[:MOST_TITLES]


def list_run_decisions(events: Iterable[Event]) -> Iterator[ReportedDecision]:
    """Yield the decisions that concern the run."""
    resumed, changes = 0, list[str]()
    for event in events:
        data = event.data
        match event.kind:
            case EventKind.RUN_RESUMED:
                resumed += 1
                changes.append(as_text(data.get("message")))
            case EventKind.LANE_CUT:
                text = "A resumed transcript differed from its record; it continued with live calls from there."
                yield _run_decision("lane_cut", text, [as_text(data.get("lane"))])
            case EventKind.PREAMBLE_MADE if data.get("origin") == "template":
                text = "A preamble could not be generated; the template was used alone."
                detail = [as_text(data.get("role")), as_text(data.get("why"))]
                yield _run_decision("preamble", text, detail)
            case EventKind.APPLIED if conflicts := as_texts(data.get("conflicts")):
                text = "The result was not applied: these files have changed since the run started."
                yield _run_decision("applied", text, conflicts)
            case EventKind.APPLIED:
                text = "The result was applied to the project's directory."
                yield _run_decision("applied", text, as_texts(data.get("paths")))
            case _:
                continue
    # One line for all: a run can be resumed many times.
    if resumed:
        times = "once" if resumed == 1 else f"{resumed} times"
        yield _run_decision("resumed", f"The run was resumed {times}.", changes)


def _run_decision(kind: str, text: str, detail: Iterable[str]) -> ReportedDecision:
    return ReportedDecision(
        kind=kind, task="", attempt=0, text=text, detail=tuple(part for part in detail if part)
    )
