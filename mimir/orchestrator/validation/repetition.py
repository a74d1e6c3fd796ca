"""Repetition of the proof of an invocation: checks, citations, seals, files of now."""

from dataclasses import replace

from mimir.agents.citations import MAX_CITATIONS, count_citations, parse_sources
from mimir.attempts.agent_answers.cited_sources import look_up_citations
from mimir.attempts.agent_answers.response_form import answer_schema, find_words
from mimir.attempts.deliverable import HIDDEN
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.orchestrator.services import ProjectServices
from mimir.orchestrator.validation.issues import Repetition
from mimir.orchestrator.validation.stored_run import StoredInvocation
from mimir.qc.checks.regression import AcceptedTask
from mimir.reporting.audit.verification import verify


async def repeat_proof(
    services: ProjectServices, stored: StoredInvocation, commands: tuple[str, ...]
) -> Repetition:
    """Repeat checks and look-ups of an ended invocation, outside of its run.

    Args:
        services: Services of the project.
        stored: The invocation.
        commands: Further checks of the caller.

    Raises:
        Paused: The sandbox or the disk failed.
    """
    run = stored.run
    await services.history.serve(run.id, run.base_commit)
    services.show_base(run.base_commit, run.project_id)
    # Without its seals, a repeated check would prove another run.
    audit = await verify(services.store, services.history, run.id)
    unverified = await _look_up(services, stored)
    return Repetition(
        runs=await _run_checks(services, stored, commands),
        citations=min(count_citations(_words(stored)), MAX_CITATIONS),
        unverified=unverified,
        stale=await _find_stale(services, stored),
        problems=audit.problems,
    )


async def _run_checks(
    services: ProjectServices, stored: StoredInvocation, commands: tuple[str, ...]
) -> list[tuple[Check, CheckRun]]:
    if not stored.tree:
        return []
    wanted = [
        Check(id=f"given-{number}", criteria=(), run=command)
        for number, command in enumerate(commands, 1)
    ]
    answer = stored.work.answer if stored.work else ""
    accepted = stored.accepted or AcceptedTask(
        task=stored.task, attempt=0, answer=answer, passed=frozenset()
    )
    # A red run counts if it is red twice; of the run's own checks only those that had passed.
    accepted = replace(accepted, passed=accepted.passed | {one.id for one in wanted})
    # A task that was not accepted has no check that could turn red.
    own = stored.task.checks if stored.accepted else ()
    found: list[tuple[Check, CheckRun]] = []
    for check in (*own, *wanted):
        if check.required and check.id in accepted.passed:
            runs = await services.checks.on_tree(accepted, check, stored.tree, (), phase="gate")
            found.append((check, runs[-1]))
    return found


async def _look_up(services: ProjectServices, stored: StoredInvocation) -> tuple[str, ...]:
    """Return the citations that do not hold, on the stored tool log and the stored tree."""
    work = stored.work
    if work is None:
        return ()
    found = await look_up_citations(
        _words(stored),
        work.tree,
        stored.tool_log,
        read_file=services.history.file,
        redact=services.redact,
        material=stored.definition.material if stored.definition else None,
    )
    # A citation without support at the end of the run never gets it later.
    return tuple(dict.fromkeys((*work.unsupported, *found)))


async def _find_stale(services: ProjectServices, stored: StoredInvocation) -> tuple[str, ...]:
    """Return the delivered and cited files that are neither as before the run nor as after it."""
    work = stored.work
    # Another directory started the run: its files are not here.
    if work is None or services.history.is_away:
        return ()
    cited = {one.name for one in parse_sources(_words(stored)) if one.kind == "file"}
    named = {*work.changed, *cited}
    if not named:
        return ()
    now = await services.history.base(services.ids.new("check"), hidden=HIDDEN)
    changed = [
        {one.path for one in await services.history.diff_trees(tree, now.tree)}
        for tree in (stored.run.base_tree, stored.tree)
    ]
    return tuple(sorted(named & changed[0] & changed[1]))


def _words(stored: StoredInvocation) -> str:
    schema = answer_schema(stored.definition) if stored.definition else None
    return find_words(stored.work.answer, schema) if stored.work else ""
