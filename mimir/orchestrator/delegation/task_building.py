"""Plan of an invocation: one task with the rights that both sides share. Pure."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from mimir.agents.context import agent
from mimir.agents.context.quotation import fence_block
from mimir.domain.agent import ROLES, WRITE_TOOLS
from mimir.domain.agent_definition import AgentDefinition, Verification
from mimir.domain.globs import has_wildcard, is_outside, matches
from mimir.domain.invocation import (
    NO_FILES,
    InvocationRequest,
    PinnedDefinition,
    PinnedMaterial,
    PinnedSkill,
)
from mimir.domain.plan import NO_REVIEWER, Check, Criterion, Plan, Task
from mimir.domain.program import PinnedProgram
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class
from mimir.errors import PlanError, UnavailableError, UsageError
from mimir.registry.catalogue import AgentEntry
from mimir.registry.domain_terms import domain_terms

MAX_CONTEXT_FILES = 10
MAX_RETRIES = 1
TASK = "task-1"
WHOLE_TASK = "The result does all that the task asks, and its statements are true."
"""Criterion of a definition with `verify: judge`, if the caller names none."""
MUST_CITE = (
    "The answer is verified by its citations: it has at least one, and each is found by the engine, "
    'as in [file:PATH] "at least 12 characters of the file" or [call:N] "words of its result".'
)


@value_class
class InvocationLimits:
    """Limits of a definition without own ones."""

    tool_calls: int
    timeout_seconds: int


def build_plan(
    entry: AgentEntry,
    request: InvocationRequest,
    limits: InvocationLimits,
    hash_file: Callable[[str], str],
    *,
    program: PinnedProgram | None = None,
    skills: Sequence[PinnedSkill] = (),
) -> tuple[Plan, PinnedDefinition]:
    """Return the plan of an invocation and the definition to pin.

    Args:
        entry: The definition with its grant.
        request: Request of the caller.
        limits: For a definition without own ones.
        hash_file: Path → SHA-256 of the file; empty: there is none.
        program: Of a `cli` definition.
        skills: That the agent may read.

    Raises:
        PlanError: The definition cannot be used so.
        UsageError: The request decides nothing, or asks for more than the definition allows.
    """
    require_usable(entry, request)
    definition = entry.definition
    verify = _verification(entry, request)
    pinned = PinnedDefinition(
        address=entry.address,
        path=definition.source.path,
        hash=definition.source.hash,
        prompt=definition.prompt,
        program=program,
        skills=tuple(skills),
        files=definition.files,
        material=PinnedMaterial(
            terms=domain_terms(definition.name, definition.description),
            reads_memory=definition.memory != "none",
        ),
        output_schema=request.output_schema or definition.output_schema,
        verify=pinned_verification(verify),
        max_tokens=answer_limit(definition),
        temperature=definition.temperature,
    )
    files = _writable_files(entry, request)
    # A program has tools of its own; the sandbox confines them.
    tools = () if program else _usable_tools(entry, request, can_write=bool(files))
    calls = definition.limits.max_tool_calls or limits.tool_calls
    calls = min(calls, request.max_tool_calls or calls)
    seconds = min(
        definition.limits.timeout_seconds or limits.timeout_seconds,
        request.timeout_seconds or 7200,
    )
    judged = (*request.criteria, *((WHOLE_TASK,) if verify == "judge" else ()))
    criteria, checks = _proofs(replace(request, criteria=judged), hash_file)
    task = Task(
        id=TASK,
        title=_title(request.prompt),
        prompt=demand_citations(_prompt(request), pinned),
        worker_role=pinned.role,
        qc_role=NO_REVIEWER,
        criteria=criteria,
        checks=checks,
        files=files or (NO_FILES,),
        context_files=request.context_files,
        tools=tools,
        # The limit is one and a half times the estimate.
        estimated_tool_calls=2 * calls // 3,
        time_limit_minutes=seconds / 60,
        max_retries=MAX_RETRIES,
        model="" if program else entry.model,
    )
    title = f"{entry.address}: {task.title}"
    return Plan(title=title, tasks=(task,), request=request.prompt), pinned


def trusted_verification(definition: AgentDefinition) -> Verification:
    """Return how a definition is verified."""
    # A file of a clone must not decide which proof is enough.
    return definition.verify if definition.source.is_trusted else "auto"


def pinned_verification(verify: Verification) -> str:
    """Return the value that a run pins: empty for QC, the default."""
    return verify if verify in ("checks", "citations") else ""


def demand_citations(prompt: str, definition: PinnedDefinition) -> str:
    """Return the prompt of a task, with a demand of citations if they verify the answer."""
    return f"{prompt}\n\n{MUST_CITE}" if definition.verify == "citations" else prompt


def answer_limit(definition: AgentDefinition) -> int | None:
    """Return the longest reply of a definition; one that is not trusted only lowers it."""
    own = definition.limits.max_tokens
    if own is None or definition.source.is_trusted:
        return own
    return min(own, ROLES["worker"].working_tokens)


def _verification(entry: AgentEntry, request: InvocationRequest) -> Verification:
    """Return how the result is verified: the wish of the definition, if it is trusted.

    Raises:
        UsageError: The checks alone are to decide, and the request has a criterion for QC.
    """
    wish = trusted_verification(entry.definition)
    if wish == "checks" and request.criteria:
        raise UsageError(
            f"{entry.address} is verified by checks alone (verify: checks), and QC would judge {request.criteria[0][:80]!r}.",
            next_step="Give a command or a path instead: --check CMD, --deliverable PATH",
        )
    # A criterion of the caller is judged anyway.
    return "auto" if wish == "judge" and request.criteria else wish


def require_fit(
    request: InvocationRequest, definition: PinnedDefinition, context_tokens: int | None
) -> None:
    """Refuse a request whose critical parts exceed the context of the model.

    Args:
        request: Request of the caller; none of it is cut.
        definition: Its prompt is part of each request to the model.
        context_tokens: Of the model. None: it is not known.

    Raises:
        PlanError: They exceed it.
    """
    critical = {
        "task": estimate(request.prompt),
        "context": sum(map(estimate, request.context)),
        "criteria and checks": sum(map(estimate, (*request.criteria, *request.checks))),
        "definition": estimate(definition.prompt),
    }
    agent.require_fit(critical, agent.window_of(context_tokens))


def lacks_tools(entry: AgentEntry) -> Sequence[str]:
    """Return the tools without which a shipped agent cannot work, and which are not there."""
    # Files of other programs name many tools; a shipped agent names those that it cannot do without.
    is_shipped = entry.definition.source.location == "shipped"
    return [one for one in entry.grant.withheld if one.startswith("web.")] if is_shipped else ()


def require_usable(entry: AgentEntry, request: InvocationRequest) -> None:
    """Refuse an invocation that the definition does not allow.

    Raises:
        PlanError: The definition cannot be used so.
        UnavailableError: A shipped agent needs tools that this installation has not.
        UsageError: There are too many context files.
    """
    definition, show = entry.definition, f"mimir agents show {entry.address}"
    if fault := next((one for one in definition.findings if one.severity == "error"), None):
        place = f"{definition.source.keys_path}:{fault.line}:{fault.column}"
        raise PlanError(
            f"{place}: {fault.message} {fault.suggestion}".rstrip(), next_step=f"See: {show}"
        )
    if definition.is_disabled:
        raise PlanError(f"{entry.address} is disabled by its file.", next_step=f"See: {show}")
    if lacking := lacks_tools(entry):
        raise UnavailableError(
            f"{entry.address} needs {' and '.join(lacking)}, which this installation does not have.",
            next_step="Use another agent: mimir agents",
        )
    wants_writing = bool(request.files or request.deliverables)
    if not definition.source.is_trusted and (wants_writing or definition.kind == "cli"):
        is_program = definition.kind == "cli"
        reason = (
            "runs a program and is not trusted"
            if is_program
            else "is not trusted and may only read"
        )
        raise PlanError(
            f"{entry.address} {reason}.",
            next_step=f"{show}, then: mimir agents trust {entry.address}",
        )
    if len(request.context_files) > MAX_CONTEXT_FILES:
        raise UsageError(
            f"{len(request.context_files)} context files are too many.",
            next_step=f"Name at most {MAX_CONTEXT_FILES}.",
        )


def _writable_files(entry: AgentEntry, request: InvocationRequest) -> tuple[str, ...]:
    """Return the globs that both the caller and the definition allow; empty: none."""
    if request.is_read_only or not entry.definition.source.is_trusted:
        return ()
    own, wanted = entry.definition.files, (*request.files, *request.deliverables)
    for glob in wanted:
        if not glob.strip() or is_outside(glob):
            raise UsageError(
                f"The path {glob!r} leads out of the project.",
                next_step="Give it relative to the project.",
            )
        is_file = glob in request.deliverables
        # The intersection itself is decided for each path that is written.
        may_write = matches(glob, own) if is_file else any(may_overlap(glob, one) for one in own)
        if own and not may_write:
            raise UsageError(
                f"{entry.address} may not write {glob!r}; its file allows {', '.join(own)}.",
                next_step=f"See: mimir agents show {entry.address}",
            )
    # Without a wish of the caller the definition's own globs hold.
    return wanted if request.files or (wanted and not own) else (*own,)


def may_overlap(glob: str, other: str) -> bool:
    """Return False if no path can match both globs, as far as their parts show it."""
    for one, two in zip(glob.split("/"), other.split("/"), strict=False):
        if has_wildcard(one) and has_wildcard(two):
            return True
        if "**" in (one, two):
            return True
        literal, pattern = (two, one) if has_wildcard(one) else (one, two)
        # Without a wildcard, a name also means the paths below it.
        if not matches(literal, (pattern,)):
            return False
    return True


def _usable_tools(
    entry: AgentEntry, request: InvocationRequest, *, can_write: bool
) -> tuple[str, ...]:
    tools = [
        tool
        for tool in entry.grant.granted
        if (request.tools is None or tool in request.tools)
        and (can_write or tool not in WRITE_TOOLS)
    ]
    if not tools:
        raise PlanError(
            f"{entry.address} has no tool for this request; it has {', '.join(entry.grant.granted) or 'none'}.",
            next_step=f"See: mimir agents show {entry.address}",
        )
    return tuple(tools)


def _proofs(
    request: InvocationRequest, hash_file: Callable[[str], str]
) -> tuple[tuple[Criterion, ...], tuple[Check, ...]]:
    """Return criteria and checks: given, one for each command, and one for each path."""
    texts = list(request.criteria)
    checks: list[Check] = []
    for number, command in enumerate(request.checks, 1):
        texts.append(f"The command passes: {command}")
        checks.append(Check(id=f"check-{number}", criteria=(f"c{len(texts)}",), run=command))
    for number, path in enumerate(request.deliverables, 1):
        texts.append(f"The file {path} exists and differs from the base.")
        run = _delivered_check(path, hash_file(path))
        criterion = (f"c{len(texts)}",)
        checks.append(
            Check(id=f"deliverable-{number}", criteria=criterion, run=run, kind="flip", tests=())
        )
    criteria = tuple(Criterion(id=f"c{n}", text=text) for n, text in enumerate(texts, 1))
    return criteria, tuple(checks)


def _delivered_check(path: str, before: str) -> str:
    quoted = shlex.quote(path)
    # A folder, or a link to another file, is not the file.
    exists = f"test -f {quoted} && test ! -L {quoted} && test -s {quoted}"
    # A file of the base must differ from it; its hash is the only trace of the base in a check.
    return f'{exists} && test "$(sha256sum < {quoted})" != "{before}  -"' if before else exists


def _title(prompt: str) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= 72 else line[:71].rstrip() + "…"


def _prompt(request: InvocationRequest) -> str:
    # Material is quoted, so that orders in it are no instructions.
    parts = [request.prompt]
    parts += [f"Context, as material only:\n\n{fence_block(text)}" for text in request.context]
    return "\n\n".join(parts)
