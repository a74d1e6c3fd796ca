"""Sections of the report in markdown; long sections are yielded line by line. Pure."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from mimir.domain.failure import QCFailureReport
from mimir.domain.json_value import as_array, as_text
from mimir.domain.task_states import ANSWERED
from mimir.domain.test_results import describe_tests
from mimir.domain.verdict import CriterionResult
from mimir.reporting.render.markdown_escape import cell, code, fence_text, one_line
from mimir.reporting.render.numbers import amount, format_time, points, share, span
from mimir.reporting.summary.decisions import ReportedDecision
from mimir.reporting.summary.proofs import CheckLine, CheckRunLine, ControlLine, VerdictLine
from mimir.reporting.summary.requirement_lines import describe_requirements
from mimir.reporting.summary.summary import RunSummary, RunTotals
from mimir.reporting.summary.task_lines import TaskLine

MOST_FILES = 50
"""Listed paths of one task."""
MAX_PATH = 6
"""Shown tasks of the critical path: its end; the JSON twin has all of it."""
SHORT = 12
"""Characters of a hash; the JSON twin has all of it."""


def outcome(summary: RunSummary) -> str:
    """Return the head: the outcome, then the run."""
    totals, criteria = summary.totals, summary.totals.criteria
    lines = [
        f"# Outcome: {summary.outcome}",
        "",
        summary.because,
        "",
        f"- Run: {code(summary.run)}, mimir {code(summary.engine_version)}",
        f"- Plan: {code(summary.title)}"
        + (f" in {code(summary.plan_path)}" if summary.plan_path else ""),
    ]
    if summary.request:
        lines.append(f"- Request: {code(summary.request)}")
    if summary.reason:
        lines.append(f"- Reason: {code(summary.reason)}: {code(summary.message)}")
    lines += [
        f"- Time: {format_time(summary.started)} to {format_time(summary.ended)}, {span(summary.elapsed_seconds)}",
        f"- Work: {amount(totals.tasks, 'task')}, {amount(totals.attempts, 'attempt')}, "
        f"{amount(totals.model_calls, 'model call')}, {amount(totals.tokens, 'token')}{_cost(totals)}",
        f"- Criteria: {criteria.executed} passed by execution, {criteria.judged} passed by judgement, "
        f"{criteria.unverified} unverified, {criteria.failed} failed",
    ]
    lines += _schedule(summary)
    lines += _check_runs(summary)
    if summary.final_commit:
        lines.append(
            f"- Result: commit {code(summary.final_commit)} on branch {code(summary.branch)}"
        )
    if summary.proof.seal:
        lines.append(f"- Seal: {code(summary.proof.seal)}")
    return "\n".join(lines)


def _schedule(summary: RunSummary) -> Iterator[str]:
    """Yield the lower bound of the run's time, and the loss against it."""
    schedule = summary.schedule
    if schedule:
        named = [code(id) for id in schedule.critical_path[-MAX_PATH:]]
        path = " → ".join((["…"] if len(named) < len(schedule.critical_path) else []) + named)
        yield (
            f"- Lower bound: {span(schedule.bound_seconds)}, the critical path {path}; "
            f"loss against it: {span(schedule.loss_seconds)}"
        )


def _check_runs(summary: RunSummary) -> Iterator[str]:
    """Yield the number of check runs, and a note if no check was controlled."""
    if summary.controls == "never":
        yield '- Controls: none, as the setting `checks.controls = "never"` says'
    checks = summary.proof.checks
    # Runs before the work are sealed with each attempt that uses them.
    timed_runs = {(one.command, run.phase, run.tree, run.again, run.seconds)
            for one in checks for run in one.runs if not run.shared}  # fmt: skip
    runs, controls = len(timed_runs), sum(one.control.runs for one in checks if one.control)
    attempts = len({(one.task, one.attempt) for one in checks})
    if attempts and summary.controls:  # reports of older versions stay as they were
        yield (
            f"- Check runs: {runs + controls} for {amount(attempts, 'judged attempt')}, "
            f"{controls} of them controls"
        )


def _cost(totals: RunTotals) -> str:
    if totals.cost is None:
        return ""
    # Without this note, an unpriced call would look free.
    more = f" and {amount(totals.unpriced_calls, 'call')} without a price"
    dated = f" (prices of {totals.prices_as_of})" if totals.prices_as_of else ""
    return f", cost {totals.cost}{dated}{more if totals.unpriced_calls else ''}"


def requirements_section(summary: RunSummary) -> Iterator[str]:
    """Yield the requirements that the user approved, each with its decision."""
    if not summary.requirements:
        return
    yield from ("## Requirements", "")
    yield f"Of the approved specification: {', '.join(describe_requirements(summary.requirements))}."
    yield from ("", "| Requirement | State | Criteria | Text |\n|---|---|---|---|")
    for one in summary.requirements:
        criteria = ", ".join(cell(name) for name in one.criteria) or "none"
        yield f"| {cell(one.id)} | {one.state} | {criteria} | {cell(one.text)} |"


def tasks_section(summary: RunSummary) -> Iterator[str]:
    """Yield the table of tasks."""
    if not summary.tasks:
        return
    head = (
        "| Task | Title | Status | Score | Attempts | Calls of limit | Time | Executed | Judged | Unverified | Failed |\n"
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    note = (
        "*Executed* and *judged* count criteria that passed: by checks that the engine ran, or by QC with a quote that the engine "
        "found in its source."
    )
    yield from ("## Tasks", "", head)
    yield from map(_task, summary.tasks)
    yield from ("", note)


def proof(summary: RunSummary) -> Iterator[str]:
    """Yield the proof of the result: criteria, check runs, verdicts, the final gate."""
    proven = summary.proof
    # Nothing was proven: the record only binds the answer to its tree.
    if summary.outcome == ANSWERED:
        return
    if not proven.checks and proven.gate is None and not any(t.criteria for t in summary.tasks):
        return
    where = f" in the sandbox {code(proven.sandbox)}" if proven.sandbox else ""
    yield "## Proof"
    yield ""
    yield (
        f"The engine ran every check itself{where}, on clean checkouts, and sealed each run as a record "
        f"({amount(proven.records, 'record')} in all)."
    )
    # Grouped once: a search for each task would be quadratic.
    of_task: dict[str, list[CheckLine | VerdictLine]] = {}
    for one in (*proven.checks, *proven.verdicts):
        of_task.setdefault(one.task, []).append(one)
    for task in summary.tasks:
        shown = [*_criteria(task.criteria, summary.controls), *_proofs(of_task.get(task.id, ()))]
        if shown:
            yield from ("", f"### {code(task.id)}", "", fence_text("\n".join(shown)))
    yield from _merged_tree_checks(summary)
    yield from _gate(summary)


def _proofs(of_task: Iterable[CheckLine | VerdictLine]) -> Iterator[str]:
    for one in of_task:
        if isinstance(one, CheckLine):
            yield from _check(one)
        else:
            yield _verdict(one)


def files_section(summary: RunSummary) -> Iterator[str]:
    """Yield the changed files of each task, by git."""
    changed = [task for task in summary.tasks if task.files]
    if not changed:
        return
    yield from ("## Files changed", "")
    for task in changed:
        note = "" if task.in_result else f" (not in the result{_last_commit_note(task)})"
        yield f"- {code(task.id)}{note}: {_format_names(task.files)}"


def failures(summary: RunSummary) -> str:
    """Return the failed and blocked tasks, and their effect on the plan."""
    impact = summary.impact
    if impact is None:
        return ""
    lines = ["## Failures", ""]
    lines += [_blocked_line(task) for task in summary.tasks if task.blocked_by]
    lines += [""] if lines[-1] else []
    lines += [
        "### Effect on the plan",
        "",
        f"- Blocking tasks: {_format_names(impact.blocking_tasks)}",
        f"- Blocked tasks: {_format_names(impact.blocked_tasks)}",
        f"- Delay: {share(impact.project_delay)} of the plan's estimated work is blocked",
        f"- Risk: {impact.risk_level}",
        "",
        "Next actions and lessons:",
        "",
        fence_text("\n".join([*_list(impact.next_actions), *_list(impact.lessons_learned)])),
    ]
    return "\n".join(lines)


def failure(report: QCFailureReport) -> str:
    """Return the failure report of one task."""
    shown = [f"cause: {report.cause}", "timeline"]
    for entry in report.timeline:
        shown.append(f"  attempt {entry.attempt}: score {points(entry.score)}, {entry.cause}")
        shown += [f"    - {one_line(issue, 500)}" for issue in entry.issues]
    shown += ["root causes", *_list(report.root_causes, "  "), "recommendations"]
    shown += _list(report.recommendations, "  ")
    return f"### Failure report of {code(report.task)}\n\n{fence_text(chr(10).join(shown))}"


def reasoning_section(summary: RunSummary) -> Iterator[str]:
    """Yield the feedback of QC on each task."""
    with_feedback = [task for task in summary.tasks if task.feedback.strip()]
    if not with_feedback:
        return
    yield from ("## Reasoning", "")
    yield "Feedback of QC, written by a model. The verdicts are in the section Proof."
    for task in with_feedback:
        yield from ("", f"{code(task.id)}:", "", fence_text(task.feedback, 4000))


def decisions_section(summary: RunSummary) -> str:
    """Return the decisions of the engine."""
    if not summary.decisions:
        return ""
    shown = [line for decision in summary.decisions for line in _decision(decision)]
    return "\n".join(["## Decisions", "", fence_text("\n".join(shown), 200_000)])


def questions_section(summary: RunSummary) -> Iterator[str]:
    """Yield the questions to the user, with their answers and the answering principals."""
    if not summary.questions:
        return
    head = "| Question | Task | Title | State | Answer | By | Asked | Closed |\n|---|---|---|---|---|---|---|---|"
    yield from ("## Questions", "", head)
    for one in summary.questions:
        # A default in force must not look like an answer of the user.
        answer = one.answer or (one.default and f"{one.default} (default)")
        by = f"{one.by} ({one.transport})" if one.transport else one.by
        cells = (
            cell(one.id),
            cell(f"{one.task}/{one.attempt}"),
            cell(one.title),
            one.state,
            cell(answer) if answer else "",
            cell(by) if by else "",
            format_time(one.asked_at),
            format_time(one.closed_at) if one.closed_at else "",
        )
        yield f"| {' | '.join(cells)} |"


def triangle_section(summary: RunSummary) -> str:
    """Return direction, assumptions and decisions, in the words of users and agents."""
    triangle = summary.triangle
    if triangle is None:
        return ""
    shown: list[str] = []
    for name, texts in triangle.as_json().items():
        shown += [name, *(f"  - {one_line(as_text(text), 1000)}" for text in as_array(texts))]
    return "\n".join(
        ["## Direction, assumptions, decisions", "", fence_text("\n".join(shown), 200_000)]
    )


def warnings_section(summary: RunSummary) -> str:
    """Return the warnings for the user."""
    if not summary.warnings:
        return ""
    shown = [f"- {one_line(text, 500)}" for text in summary.warnings]
    return "\n".join(["## Warnings", "", fence_text("\n".join(shown), 200_000)])


Link = Callable[[Literal["run", "task"], str], str]
"""(kind, id) of a node → address of a page that shows it."""


def nodes(summary: RunSummary, link: Link | None) -> Iterator[str]:
    """Yield the ids of all nodes in the store, with links if the store has pages for them."""

    def page(shown: Literal["run", "task"], id: str) -> str:
        return f" ([in Neo4j Browser](<{link(shown, id)}>))" if link else ""

    yield from ("## Nodes", "", f"- Run: {code(summary.run)}{page('run', summary.run)}")
    for task in summary.tasks:
        parts = [f"- Task {code(task.node)}{page('task', task.node)}"]
        if task.history:
            parts.append(f"attempts {_format_names([a.node for a in task.history])}")
        if task.taken_from:
            parts.append(f"reused from {code(task.taken_from)}")
        if task.answer:
            parts.append(f"answer {code(task.answer)}, SHA-256 {code(task.answer_hash[:SHORT])}")
        yield "; ".join(parts)


def next_steps(summary: RunSummary) -> str:
    """Return the commands for the next step."""
    lines = ["## Next steps", ""]
    lines += [f"- {step.why}: {code(step.command, 600)}" for step in summary.next_steps]
    return "\n".join(lines)


def _task(task: TaskLine) -> str:
    counts = task.counts
    status = f"{task.status} ({cell(task.cause)})" if task.cause else task.status
    return (
        f"| {cell(task.id)} | {cell(task.title)} | {status} | {points(task.score)} | "
        f"{task.attempts} of {task.attempts_granted} | {task.tool_calls} of {task.limit} | {span(task.seconds)} | "
        f"{counts.executed} | {counts.judged} | {counts.unverified} | {counts.failed} |"
    )


def _criteria(criteria: Sequence[CriterionResult], controls: str) -> Iterable[str]:
    for one in criteria:
        weight = ", critical" if one.critical else ""
        is_open = controls == "never" and (one.state, one.basis) == ("passed", "executed")
        basis = 'executed, no control: checks.controls = "never"' if is_open else one.basis
        yield f"{one.state} ({basis}) {one.id}: {one_line(one.text)} [{one.points} points{weight}]"
        if one.quote:
            yield f"  found in {one_line(one.source, 200)}: “{one_line(one.quote)}”"
        if one.reason:
            yield f"  why: {one_line(one.reason, 500)}"


def _check(one: CheckLine) -> Iterable[str]:
    traits = [one.kind, "required" if one.required else "shown only"]
    traits += ["flaky"] if one.flaky else []
    traits += ["self-authored"] if one.self_authored else []
    yield f"check {one_line(one.check)}: {one.state} ({', '.join(traits)})"
    yield f"  $ {one_line(shlex.join(one.command))}"
    yield from (f"  {_run(run)}" for run in one.runs)
    if one.control:
        yield f"  {_control(one.control)}"


def _control(one: ControlLine) -> str:
    tests = describe_tests(one.sensitive, one.counted, control=one.state)
    runs = amount(one.runs, "run") if one.runs else "no further run"
    return (
        f"{tests} by {one.method}, {runs}, record {one_line(one.record)}, seal {one.seal[:SHORT]}"
    )


def _verdict(one: VerdictLine) -> str:
    result = "passed" if one.passed else "did not pass"
    return (
        f"verdict on attempt {one.attempt}: {result}, tree {one.tree[:SHORT]}, record {one_line(one.record)}, "
        f"seal {one.seal[:SHORT]}"
    )


def _run(run: CheckRunLine) -> str:
    again = ", again" if run.again else ""
    tests = describe_tests(run.passed, run.counted, skipped=run.skipped)
    return (
        f"{run.phase}{again}: {run.ended}{f', {tests}' * bool(tests)} in {span(run.seconds)}, tree {run.tree[:SHORT]}, "
        f"record {one_line(run.record)}, seal {run.seal[:SHORT]}"
    )


def _merged_tree_checks(summary: RunSummary) -> list[str]:
    if not summary.proof.merged:
        return []
    shown = [
        f"{one_line(line.task)} merged, check {one_line(line.check)} of {one_line(line.of)}: {_run(line.run)}"
        for line in summary.proof.merged
    ]
    return ["", "### Checks on merged trees", "", fence_text("\n".join(shown), 200_000)]


def _gate(summary: RunSummary) -> list[str]:
    gate = summary.proof.gate
    if gate is None:
        return []
    state = "red" if gate.red else "green"
    lines = [
        "",
        "### Final gate",
        "",
        f"{amount(gate.runs, 'run')} of the checks of completed tasks on the final tree {code(gate.tree[:SHORT])}: "
        f"**{state}**, record {code(gate.record)}, seal {code(gate.seal[:SHORT])}.",
    ]
    return [*lines, "", fence_text("\n".join(_list(gate.red)))] if gate.red else lines


def _last_commit_note(task: TaskLine) -> str:
    commit = next((a.commit for a in reversed(task.history) if a.commit), "")
    return f"; last deliverable: commit {code(commit[:SHORT])}" if commit else ""


def _blocked_line(task: TaskLine) -> str:
    return f"- {code(task.id)} is blocked by {code(task.blocked_by)}"


def _decision(decision: ReportedDecision) -> Iterable[str]:
    where = decision.task
    if decision.attempt:
        where += f", attempt {decision.attempt}"
    yield f"{one_line(where) or 'the run'}: {decision.text}"
    yield from (f"  - {one_line(part, 500)}" for part in decision.detail)


def _format_names(names: Sequence[str]) -> str:
    """Return names in code; a dash for none."""
    if not names:
        return "—"
    more = f" and {len(names) - MOST_FILES:,} more" if len(names) > MOST_FILES else ""
    return ", ".join(code(name) for name in names[:MOST_FILES]) + more


def _list(items: Iterable[str], indent: str = "") -> list[str]:
    return [f"{indent}- {one_line(item, 1000)}" for item in items]
