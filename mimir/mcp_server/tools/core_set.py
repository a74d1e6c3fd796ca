"""The tool set `core`: eight tools to plan, execute and read proof."""

from collections.abc import Mapping

from mimir.domain.json_value import JsonObject
from mimir.domain.question import MAX_ANSWER
from mimir.domain.run import APPLY_OPTIONS
from mimir.mcp_server.tools import reading, starting
from mimir.mcp_server.tools.delegation_set import DELEGATION
from mimir.mcp_server.tools.schemas import FLAG, TEXTS, arguments_of, result_of, text, whole
from mimir.mcp_server.tools.tool_values import IncomingCall, Scope, ServedTool, ToolAnswer
from mimir.orchestrator.patterns.choose import PATTERNS

_READ: frozenset[Scope] = frozenset({"read"})
_WORK: frozenset[Scope] = frozenset({"work"})


_RUN = text("Run id or its beginning; default: the latest.", 200)
_PATTERN: JsonObject = {"type": "string", "enum": list(PATTERNS)}
_REQUEST = text(most=100_000, least=1)
_STARTED: Mapping[str, str] = {"run": "string", "status": "string", "next": "string"}


async def _answer(call: IncomingCall) -> ToolAnswer:
    # Imported here: the list of tools needs none of it, and it takes a sixth of the start.
    from mimir.mcp_server.tools import writing

    return await writing.answer(call)


async def _memory_add(call: IncomingCall) -> ToolAnswer:
    from mimir.mcp_server.tools import writing

    return await writing.memory_add(call)


CORE: tuple[ServedTool, ...] = (
    ServedTool(
        name="plan",
        description="Plan a request: write a plan of tasks with criteria and checks. Executes "
        "nothing. If it takes long, the answer is status `working` with the run.",
        scopes=_WORK,
        handle=starting.plan,
        input_schema=arguments_of(
            "request",
            request=_REQUEST,
            ecko={**FLAG, "description": "Specify the request first."},
            model=text(most=200),
            pattern=_PATTERN,
        ),
        output_schema=result_of(**_STARTED, path="string", tasks="array", findings="array"),
        is_read_only=False,
        is_idempotent=False,
        reaches_out=True,
    ),
    ServedTool(
        name="execute",
        description="Execute a plan, or plan and execute a request. Agents work in isolated "
        "copies; executed checks decide what is completed. If it takes long, the answer is "
        "status `working` with the run.",
        scopes=_WORK,
        handle=starting.execute,
        input_schema=arguments_of(
            plan=text("File, or folder of chains/.", 500),
            request=_REQUEST,
            only={**TEXTS, "description": "Tasks; default: all."},
            **{"from": text("Run whose completed tasks are reused.", 200)},
            model=text(most=200),
            pattern=_PATTERN,
            max_calls=whole(),
            max_tokens=whole(),
            max_cost={"type": "number", "minimum": 0},
            apply={
                "type": "string",
                "enum": list(APPLY_OPTIONS),
                "description": "Change the user's files; default: never.",
            },
        ),
        output_schema=result_of(**_STARTED, tasks="object", questions="array"),
        is_read_only=False,
        is_idempotent=False,
        is_destructive=True,
        reaches_out=True,
    ),
    ServedTool(
        name="status",
        description="State of a run and its tasks; with wait_seconds, when it has stopped.",
        scopes=_READ,
        handle=reading.status,
        input_schema=arguments_of(run=_RUN, wait_seconds=whole(0, 50)),
        output_schema=result_of(**_STARTED, tasks="array"),
    ),
    ServedTool(
        name="report",
        description="Report of a run: proof of each criterion, failures, decisions.",
        scopes=_READ,
        handle=reading.report,
        input_schema=arguments_of(
            run=_RUN, section=text("Beginning of a heading.", 200), offset=whole(0)
        ),
        output_schema=result_of(run="string", text="string", characters="integer", next="string"),
    ),
    ServedTool(
        name="answer",
        description="Ask the user the open questions of agents. Give `answers` only with the "
        "user's words.",
        scopes=frozenset({"work", "answer"}),
        handle=_answer,
        input_schema=arguments_of(
            questions={**TEXTS, "description": "Ids; default: all."},
            answers={
                "type": "object",
                "description": "Question id to text.",
                "additionalProperties": True,
            },
        ),
        output_schema=result_of(open="array", answered="array", refused="array", next="string"),
        is_read_only=False,
        is_idempotent=False,
    ),
    ServedTool(
        name="memory_search",
        description="Search accepted notes, lessons and past runs.",
        scopes=_READ,
        handle=reading.memory_search,
        input_schema=arguments_of(
            "text", text=text(most=1000, least=1), labels=TEXTS, limit=whole(1, 50)
        ),
        output_schema=result_of(memories="array"),
    ),
    ServedTool(
        name="memory_add",
        description="Propose a note for the project's memory. The user accepts it.",
        scopes=frozenset({"work", "answer"}),
        handle=_memory_add,
        input_schema=arguments_of(
            "text",
            text=text(most=MAX_ANSWER, least=1),
            name=text("Title.", 200),
            about={**TEXTS, "description": "Node ids."},
        ),
        output_schema=result_of(id="string", state="string"),
        is_read_only=False,
    ),
    ServedTool(
        name="inbox",
        description="Open questions to the user.",
        scopes=_READ,
        handle=reading.inbox,
        input_schema=arguments_of(all={**FLAG, "description": "Closed ones too."}),
        output_schema=result_of(questions="array", notifications="array", proposals="array"),
    ),
)
"""In the order of the list."""

TOOL_SETS: Mapping[str, tuple[ServedTool, ...]] = {"core": CORE, "delegation": DELEGATION}
"""Name of a set → its tools."""
