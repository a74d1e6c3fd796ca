"""The tool set `delegation`: spawn specialists for one bounded task each."""

from mimir.domain.json_value import JsonObject
from mimir.mcp_server.tools import delegating
from mimir.mcp_server.tools.agent_results import instructions, validating
from mimir.mcp_server.tools.sessions import session_tools
from mimir.mcp_server.tools.sets.declarations import (
    FLAG,
    MODE,
    OPEN,
    TEXTS,
    arguments_of,
    read_tool,
    result_of,
    text,
    texts,
    whole,
    work_tool,
)
from mimir.mcp_server.tools.tool_values import ServedTool

_RUN = text("Run of an agent.", 200, 1)
_RUN_OR_SESSION = text("Run, or session.", 200)
_SESSION = text("Handle of open_session.", 200)
_WAIT = whole(0, 50)


def _decisions(name: str) -> JsonObject:
    """Return the schema of decisions with an id and a text."""
    return {"type": "array", "items": arguments_of("id", id=text(), **{name: text()})}


DELEGATION: tuple[ServedTool, ...] = (
    work_tool(
        "spawn_agent",
        "Invoke a specialist for one bounded task, in a context of its own. Citations "
        "are looked up and checks are executed. If it takes long, the answer is status `working`.",
        delegating.spawn_agent,
        arguments_of(
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
            max_tool_calls=whole(1, 200),
            timeout_seconds=whole(10, 7200),
            max_cost={"type": "number", "minimum": 0},
            mode={**MODE, "description": "ping and trust do not wait."},
            refines=text("Run whose result it improves.", 200),
            session=_SESSION,
            force={**FLAG, "description": "The task may repeat an earlier one."},
            wait_seconds=_WAIT,
        ),
        result_of(run="string", status="string", next="string"),
        is_idempotent=False,
        reaches_out=True,
    ),
    work_tool(
        "validate_output",
        "Repeat the checks and citations of an agent's response, and recommend to "
        "accept it, refine the task or re-delegate.",
        validating.validate_output,
        arguments_of(
            "sub_agent_response",
            sub_agent_response={"description": "Run, or response with it."},
            requirements=texts(most=20),
            quality_criteria=texts(most=20),
            checks=texts("Commands that must pass.", 20),
            judge={**FLAG, "description": "A model judges too."},
            memory={
                **arguments_of(
                    accept=TEXTS,
                    reject=_decisions("reason"),
                    edit=_decisions("text"),
                    supersedes={**OPEN, "description": "Accepted id to the older one."},
                ),
                "description": "Decisions about memories that it proposes.",
            },
        ),
        result_of(run="string", decision_recommendation="string"),
    ),
    read_tool(
        "list_available_chatmodes",
        "Agent definitions that can be spawned.",
        delegating.list_available_chatmodes,
        arguments_of(query=text(most=200), limit=whole(1, 200), offset=whole(0)),
        result_of(chatmodes="array", omitted="integer"),
    ),
    read_tool(
        "get_available_instructions",
        "Instructions of the project, and skills; with a name the text.",
        instructions.get_available_instructions,
        arguments_of(name=text(most=500)),
        result_of(instructions="array", text="string"),
    ),
    read_tool(
        "get_agent_status",
        "State of an invocation, or of a session with its runs, limits and metrics; "
        "without an id that of yours.",
        session_tools.get_agent_status,
        arguments_of(session_id=_RUN_OR_SESSION, run=_RUN_OR_SESSION),
        result_of(run="string", session="string", status="string"),
    ),
    read_tool(
        "get_agent_output",
        "Checked answer of an agent.",
        delegating.get_agent_output,
        arguments_of(
            session_id=_RUN,
            run=_RUN,
            wait_seconds=_WAIT,
            part={"type": "string", "enum": ["response", "report", "diff", "transcript"]},
            offset=whole(0),
        ),
        result_of(run="string", status="string", next="string"),
    ),
    work_tool(
        "terminate_agent",
        "Cancel an invocation, or all that are open or queued in a session. "
        "One that has ended stays as it is.",
        session_tools.terminate_agent,
        arguments_of(session_id=_RUN_OR_SESSION, run=_RUN_OR_SESSION, reason=text(most=1000)),
        result_of(run="string", session="string", status="string"),
        is_destructive=True,
    ),
    work_tool(
        "open_session",
        "Open a session for one purpose: its invocations have limits of their own.",
        session_tools.open_session,
        arguments_of(
            "name",
            name=text("Purpose.", 200, 1),
            chat=text("Your own id of this conversation.", 200),
            max_calls=whole(),
            max_tokens=whole(),
            max_cost={"type": "number", "minimum": 0},
        ),
        result_of(session="string", limits="object"),
        is_idempotent=False,
    ),
)
"""In the order of the list."""
