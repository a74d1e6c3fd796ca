"""Checks of the engine on proposals of an agent: sources, relevance, duplicates."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mimir.agents.citations import (
    MAX_CITATIONS,
    find_unsupported,
    find_unsupported_sources,
    parse_citations,
    parse_sources,
)
from mimir.agents.tool_log import ToolLogEntry
from mimir.attempts.agent_answers.cited_sources import FILE_BYTES
from mimir.attempts.agent_answers.response_form import answer_schema, read_answer
from mimir.attempts.agent_answers.stored_tool_log import load_tool_log
from mimir.domain.agent import MEMORY_TOOLS
from mimir.domain.deliverable import Deliverable
from mimir.domain.invocation import AGENT_TEXT, PinnedDefinition
from mimir.domain.json_value import JsonObject, as_object, as_text, as_texts
from mimir.domain.plan import Task
from mimir.domain.value_class import value_class
from mimir.errors import AnswerError, MimirError
from mimir.orchestrator.proposals import rules
from mimir.orchestrator.services import ProjectServices
from mimir.store.memory_records import MemoryRecord
from mimir.store.operations.record_loading import (
    decode_plan,
    find_json,
    load_run,
    load_run_with_plan,
    load_task_attempts,
)
from mimir.store.protocol import ReadOps
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.run_records import RunRecord
from mimir.store.run_reading import find_records

_BARE = re.compile(r"\A(call|file|memory):\s?([^\s\"]+)")


@value_class
class CheckedProposals:
    """Memory operations of a run, as they are stored and shown."""

    kept: Sequence[MemoryRecord] = ()
    operations: Sequence[JsonObject] = ()
    """All of them as in the response, refused ones too."""


NO_PROPOSALS = CheckedProposals()


@value_class
class _ProposingRun:
    run: RunRecord
    task: Task
    attempt: str
    tree: str
    definition: PinnedDefinition
    operations: Sequence[JsonObject]
    calls: Mapping[int, ToolLogEntry]
    """Number → result of each tool call."""
    memories: str
    """Everything that the agent was given of the memory."""
    known: Sequence[MemoryRecord]
    """Accepted and proposed memories of the project."""


async def check_proposals(services: ProjectServices, run: str) -> CheckedProposals:
    """Check the proposals of the agent of a run; nothing is written."""
    found = await services.store.read(lambda reads: _load(reads, run))
    if found is None:
        return NO_PROPOSALS
    names = {
        one.name
        for given in found.operations
        for source in as_texts(given.get("sources"))
        for one in parse_sources(_complete(source))[:MAX_CITATIONS]
        if one.kind == "file" and one.name.isprintable()
    }
    # Read before the transaction that stores the proposals: git is not a part of it.
    files: dict[str, str | None] = {}
    for name in sorted(names):
        files[name] = await _read_file(services, found.tree, name)
    core = [services.project.name]
    core += [one.name for one in found.known if one.proposed_by == rules.ENGINE]
    results = [
        _check(found, one, number, files, core) for number, one in enumerate(found.operations)
    ]
    kept = [record for record, _ in results if record is not None]
    if services.accept_memory == rules.ENGINE:
        kept = [_accept(one) for one in kept]
    states = {one.id: one for one in kept}
    shown = [
        {**one, "state": states[id].state} if (id := as_text(one.get("id"))) in states else one
        for _, one in results
    ]
    return CheckedProposals(
        kept=[replace(one, text=services.redact(one.text)) for one in kept], operations=shown
    )


def _load(reads: ReadOps, run: str) -> _ProposingRun | None:
    """Load the input of the checks; None: the run proposes nothing."""
    # Asked first: the plan of another run may be megabytes.
    if load_run(reads, run).kind != "agent":
        return None
    pinned, record = find_json(reads, run, AGENT_TEXT), load_run_with_plan(reads, run)
    if pinned is None:
        return None
    (task,) = decode_plan(record).tasks
    attempts = [one for one in load_task_attempts(reads, run, task.id) if one.deliverable]
    if not attempts:
        return None
    definition = pinned.value.decode(tuple[PinnedDefinition, ...])[0]
    work = attempts[-1].deliverable.decode(Deliverable)
    try:
        answer = read_answer(work.answer, answer_schema(definition))
    except AnswerError:
        return None
    if not answer.memory_operations:
        return None
    # The same sources as those of citations.
    log = load_tool_log(reads, run, task.id, attempts[-1].number)
    memories = [one.text for one in log.values() if one.tool in MEMORY_TOOLS]
    memories += [hit.id for hit in definition.material.memory] if definition.material else []
    known = find_records(reads, MemoryRecord, {"projectId": record.project_id})
    return _ProposingRun(
        run=record,
        task=task,
        attempt=attempts[-1].id,
        tree=work.tree,
        definition=definition,
        operations=answer.memory_operations,
        calls=log,
        memories="\n".join(memories),
        known=[one for one in known if one.state in ("accepted", "proposed")],
    )


async def _read_file(services: ProjectServices, tree: str, path: str) -> str | None:
    try:
        content = await services.history.file(tree, path)
    except MimirError:  # a recording of an older version does not hold the file
        return None
    if content is None or len(content) > FILE_BYTES:
        return None
    return services.redact(content.decode("utf-8", "replace"))


def _check(
    found: _ProposingRun,
    given: JsonObject,
    number: int,
    files: Mapping[str, str | None],
    core: Sequence[str],
) -> tuple[MemoryRecord | None, JsonObject]:
    """Return the proposal of one operation and its form in the response; None: it is refused."""
    operation, data = as_text(given.get("operation")), as_object(given.get("data"))
    memory = rules.read_operation(operation, data, core)
    id = rules.proposal_id(found.run.id, operation, data, number)
    sources = as_texts(given.get("sources"))
    failed = ((one, _explain_source(one, memory.text, found, files)) for one in sources)
    unverified = [f"{source[:200]}: {reason}" for source, reason in failed if reason]
    refusal = memory.refusal
    if operation == rules.RELATIONS and len(unverified) == len(sources):
        refusal = refusal or "a relation needs a source that holds"
    shown = {**given, "id": id, "relevance": None, "unverified": unverified}
    if refusal:
        return None, {**shown, "state": "rejected", "feedback": f"refused: {refusal}"}
    # Only the text of its caller: the answer of the agent would make itself relevant.
    wanted = " ".join((found.task.prompt, *(one.text for one in found.task.criteria)))
    relevance = rules.measure_relevance(
        memory.text, wanted, [one.text for one in found.calls.values()]
    )
    same = [
        one.id for one in found.known if rules.normalise(one.text) == rules.normalise(memory.text)
    ]
    about = {rules.normalise(name) for name in memory.entities}
    others = [
        one.id
        for one in found.known
        if one.state == "accepted"
        and about & {rules.normalise(name) for name in (one.name, *one.entities)}
        and not rules.overlaps(one.text, memory.text)
    ]
    record = MemoryRecord(
        id=id,
        name=", ".join(memory.entities)[:200],
        kind=rules.KINDS.get(operation, "learning"),
        text=memory.text,
        state="proposed",
        project_id=found.run.project_id,
        run_id=found.run.id,
        source_attempt=found.attempt,
        proposed_by=f"agent:{found.definition.address}",
        operation=operation,
        data=PackedJson.pack(data),
        entities=memory.entities,
        sources=tuple(sources),
        unverified=tuple(unverified),
        relevance=relevance,
        duplicate_of=next(iter(same), ""),
        contradicts=tuple(others[:10]),
        task_hash=rules.hash_task(found.run.request),
    )
    more = {"duplicate_of": record.duplicate_of or None, "contradicts": list(record.contradicts)}
    return record, {**shown, "relevance": relevance, **more}


def _complete(source: str) -> str:
    """Return a source in the form of a citation: `call:3` is `[call:3]`."""
    return _BARE.sub(r"[\1:\2]", source.strip(), count=1)


def _explain_source(
    source: str, text: str, found: _ProposingRun, files: Mapping[str, str | None]
) -> str:
    """Return the fault of a source; empty: it has none."""
    words = _complete(source)
    calls, others = parse_citations(words), parse_sources(words)
    if len(calls) + len(others) != 1:
        return "it names no call, file or memory"
    # Without a quote, the source must have the words of the proposal itself.
    if calls and not calls[0].quote:
        result = found.calls.get(calls[0].number)
        if result is None:
            return f"there was no call {calls[0].number}"
        return "" if rules.is_supported(text, result.text) else "its result does not support this"
    if others and others[0].kind == "file" and not others[0].quote:
        content = files.get(others[0].name) or ""
        return "" if rules.is_supported(text, content) else "the file does not support this"
    claims = (
        *find_unsupported(words, found.calls),
        *find_unsupported_sources(words, files, found.memories),
    )
    return claims[0].rpartition(": ")[2] if claims else ""


def _accept(one: MemoryRecord) -> MemoryRecord:
    """Accept a proposal if the engine may do so alone."""
    relevance = one.relevance or 0.0
    # The same memory twice is no new knowledge.
    is_new = not one.duplicate_of
    if not is_new or not rules.may_engine_accept(
        one.sources, one.unverified, relevance, one.contradicts
    ):
        return one
    return replace(one, state="accepted", decided_by=rules.ENGINE, feedback="accepted")
