"""The tool set `delegation`: spawn specialists for one bounded task each."""

from mimir.domain.json_value import JsonObject
from mimir.mcp_server.tools import delegating
from mimir.mcp_server.tools.agent_results import instructions, validating
from mimir.mcp_server.tools.schemas import FLAG, TEXTS, arguments_of, result_of, text, texts, whole
from mimir.mcp_server.tools.sessions import session_tools
from mimir.mcp_server.tools.tool_values import Scope, ServedTool

_READ: frozenset[Scope] = frozenset({"read"})
_WORK: frozenset[Scope] = frozenset({"work"})
_RUN = text("Run of an agent.", 200, 1)
_RUN_OR_SESSION = text("Run, or session.", 200)
_SESSION = text("Handle of open_session.", 200)
_WAIT = whole(0, 50)


def _decisions(name: str) -> JsonObject:
    """Return the schema of decisions with an id and a text."""
    return {"type": "array", "items": arguments_of("id", id=text(), **{name: text()})}


DELEGATION: tuple[ServedTool, ...] = (
    ServedTool(
        name="spawn_agent",
        description="Invoke a specialist for one bounded task, in a context of its own. Citations "
        "are looked up and checks are executed. If it takes long, the answer is status `working`.",
        scopes=_WORK,
        handle=delegating.spawn_agent,
        input_schema=arguments_of(
            "chatmode",
            "task",
            chatmode=text("Address of a definition.", 200, 1),
            task=text("It must stand alone.", 20_000, 1),
            context=text(most=100_000),
            context_files=texts(most=10),
            expected_deliverables=texts("Paths or criteria.", 20),
            criteria=texts(most=20),
            checks=texts("Commands that must pass.", 20),
            files=texts("Globs that it may write.", 20),
            tools=texts("Only these.", 20),
            model=text(most=200),
            timeout_seconds=whole(10, 7200),
            max_cost={"type": "number", "minimum": 0},
            refines=text("Run whose result it improves.", 200),
            session=_SESSION,
            force={**FLAG, "description": "The task may repeat an earlier one."},
            wait_seconds=_WAIT,
        ),
        output_schema=result_of(run="string", status="string", next="string"),
        is_read_only=False,
        is_idempotent=False,
        reaches_out=True,
    ),
    ServedTool(
        name="validate_output",
        description="Repeat the checks and citations of an agent's response, and recommend to "
        "accept it, refine the task or re-delegate.",
        scopes=_WORK,
        handle=validating.validate_output,
        input_schema=arguments_of(
            "sub_agent_response",
            sub_agent_response={"description": "Run, or response with it."},
            requirements=texts(most=20),
            quality_criteria=texts(most=20),
            checks=texts("Commands that must pass.", 20),
            judge={**FLAG, "description": "A model judges too."},
            memory={
                **arguments_of(accept=TEXTS, reject=_decisions("reason"), edit=_decisions("text")),
                "description": "Decisions about memories that it proposes.",
            },
        ),
        output_schema=result_of(run="string", decision_recommendation="string"),
        is_read_only=False,
    ),
    ServedTool(
        name="list_available_chatmodes",
        description="Agent definitions that can be spawned.",
        scopes=_READ,
        handle=delegating.list_available_chatmodes,
        input_schema=arguments_of(query=text(most=200), limit=whole(1, 200), offset=whole(0)),
        output_schema=result_of(chatmodes="array", omitted="integer"),
    ),
    ServedTool(
        name="get_available_instructions",
        description="Instructions of the project, and skills; with a name the text.",
        scopes=_READ,
        handle=instructions.get_available_instructions,
        input_schema=arguments_of(name=text(most=500)),
        output_schema=result_of(instructions="array", text="string"),
    ),
    ServedTool(
        name="get_agent_status",
        description="State of an invocation, or of a session with its runs, limits and metrics; "
        "without an id that of yours.",
        scopes=_READ,
        handle=session_tools.get_agent_status,
        input_schema=arguments_of(session_id=_RUN_OR_SESSION, run=_RUN_OR_SESSION),
        output_schema=result_of(run="string", session="string", status="string"),
    ),
    ServedTool(
        name="get_agent_output",
        description="Checked answer of an agent.",
        scopes=_READ,
        handle=delegating.get_agent_output,
        input_schema=arguments_of(
            session_id=_RUN,
            run=_RUN,
            wait_seconds=_WAIT,
            part={"type": "string", "enum": ["response", "report", "diff"]},
        ),
        output_schema=result_of(run="string", status="string", next="string"),
    ),
    ServedTool(
        name="terminate_agent",
        description="Cancel an invocation, or all that are open or queued in a session. "
        "One that has ended stays as it is.",
        scopes=_WORK,
        handle=session_tools.terminate_agent,
        input_schema=arguments_of(
            session_id=_RUN_OR_SESSION, run=_RUN_OR_SESSION, reason=text(most=1000)
        ),
        output_schema=result_of(run="string", session="string", status="string"),
        is_read_only=False,
        is_destructive=True,
    ),
    ServedTool(
        name="open_session",
        description="Open a session for one purpose: its invocations have limits of their own.",
        scopes=_WORK,
        handle=session_tools.open_session,
        input_schema=arguments_of(
            "name",
            name=text("Purpose.", 200, 1),
            chat=text("Your own id of this conversation.", 200),
        ),
        output_schema=result_of(session="string", limits="object"),
        is_read_only=False,
        is_idempotent=False,
    ),
)
"""In the order of the list."""
