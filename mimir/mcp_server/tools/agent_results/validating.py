"""The tool `validate_output`: the stored run decides, not the caller."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mimir.bootstrap.stored_project import StoredProject
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts
from mimir.errors import ToolError
from mimir.mcp_server.tools.command_following import list_objects, make_error, wait_for_end
from mimir.mcp_server.tools.run_reading import load_status
from mimir.mcp_server.tools.run_results import WORKING
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.orchestrator.proposals.rules import MemoryDecision
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.secrets import Redactor

WAIT_SECONDS = 45.0
"""Wait of a client that polls tasks: a validation is no run, so it cannot be polled."""
_LISTS = {"requirements": "--requirement", "quality_criteria": "--quality", "checks": "--check"}


async def validate_output(call: IncomingCall) -> ToolAnswer:
    """Repeat checks and citations of an invocation, and recommend an action."""
    given = call.arguments
    decisions = _read_decisions(given.members("memory"))
    # A run of another principal is answered like an unknown one.
    status = await load_status(call.project, call.principal, _read_run(given))
    run = as_text(status.get("run"))
    if status.get("kind") != "agent":
        raise ToolError(f"{run} is not an invocation.", next_step=f'Call status with run "{run}".')
    words = ["validate", "--json"]
    for name, option in _LISTS.items():
        words += [f"{option}={one}" for one in given.texts(name)]
    if given.values.get("judge") is True:
        words.append("--judge")
    started = call.project.start_or_join([*words, "--", run], call.principal.name)
    wait = replace(call.wait, seconds=call.wait.seconds or WAIT_SECONDS)
    await wait_for_end(started, wait, run)
    if not started.has_ended:
        step = "Call validate_output again with the same arguments: it continues."
        return ToolAnswer(content={"run": run, "status": WORKING, "next": step})
    call.project.forget(started)
    found = [one for one in list_objects(started) if "decision_recommendation" in one]
    if not found:
        raise make_error(call.project, started)
    # Decided last: a call that is repeated while it works decides nothing twice.
    if not decisions:
        return ToolAnswer(content=found[-1])
    decided, refused = await _decide(call, decisions)
    known = {as_text(one["id"]): one for one in decided}
    listed = [
        {**one, **_shorten(known.pop(id))} if (id := as_text(one.get("id"))) in known else one
        for one in as_objects(found[-1].get("memory"))
    ]
    memory = [*listed, *map(_shorten, known.values()), *refused]
    return ToolAnswer(content={**found[-1], "memory": memory})


def _read_run(given: ToolArguments) -> str:
    """Return the run of a response; nothing else of a given response counts."""
    value = given.values.get("sub_agent_response")
    run = value if isinstance(value, str) else as_text(as_object(value).get("run"))
    if not run.strip():
        raise ToolError(
            "The response names no run.", next_step="Give the run of the invocation as a text."
        )
    return run


def _read_decisions(given: Mapping[str, object]) -> list[MemoryDecision]:
    older = as_object(given.get("supersedes"))
    for newer, old in older.items():
        if newer not in as_texts(given.get("accept")) or not as_text(old):
            raise ToolError(
                f"supersedes names {newer[:80]!r}, but accept does not, or no older memory.",
                next_step='Give "accept": ["NEW"], "supersedes": {"NEW": "OLD"}.',
            )
    decisions = [
        MemoryDecision(id=id, verb="accept", supersedes=as_text(older.get(id)))
        for id in as_texts(given.get("accept"))
    ]
    decisions += [
        MemoryDecision(id=as_text(one.get("id")), verb="reject", text=as_text(one.get("reason")))
        for one in as_objects(given.get("reject"))
    ]
    decisions += [
        MemoryDecision(id=as_text(one.get("id")), verb="edit", text=as_text(one.get("text")))
        for one in as_objects(given.get("edit"))
    ]
    return decisions


async def _decide(
    call: IncomingCall, decisions: Sequence[MemoryDecision]
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    from mimir.orchestrator.proposals.decisions import Decider, decide_all

    loaded = call.project.load()
    redact = Redactor(loaded.secrets)
    redacted = [replace(one, text=redact(one.text)) for one in decisions]

    async def work(
        opened: StoredProject,
    ) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        accept = loaded.settings.agents.accept
        decider = Decider(project=opened.id, name=call.principal.name, accept=accept)
        return await decide_all(opened.store, redacted, decider)

    return await call.project.use_store(work)


def _shorten(one: Mapping[str, object]) -> dict[str, object]:
    return {name: one.get(name) for name in ("id", "state", "feedback")}
