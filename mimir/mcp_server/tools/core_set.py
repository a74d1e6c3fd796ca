"""The tool set `core`: eight tools to plan, execute and read proof."""

from collections.abc import Mapping

from mimir.domain.json_value import JsonObject
from mimir.domain.question import MAX_ANSWER
from mimir.domain.run import APPLY_OPTIONS
from mimir.mcp_server.tools import reading, starting, writing
from mimir.mcp_server.tools.tool_values import Scope, ServedTool

_READ: frozenset[Scope] = frozenset({"read"})
_WORK: frozenset[Scope] = frozenset({"work"})


def _object(*required: str, **members: JsonObject) -> JsonObject:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": members, **needed, "additionalProperties": False}


def _result(**kinds: str) -> JsonObject:
    """Return a schema of results, which may hold further members."""
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


def _text(description: str = "", most: int = 0, least: int = 0) -> JsonObject:
    bounds = {"minLength": least} if least else {}
    bounds |= {"maxLength": most} if most else {}
    return {"type": "string", **({"description": description} if description else {}), **bounds}


def _whole(least: int = 1, most: int = 0) -> JsonObject:
    return {"type": "integer", "minimum": least, **({"maximum": most} if most else {})}


_TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
_FLAG: JsonObject = {"type": "boolean"}
_RUN = _text("Run id or its beginning; default: the latest.", 200)
_REQUEST = _text(most=100_000, least=1)
_STARTED: Mapping[str, str] = {"run": "string", "status": "string", "next": "string"}

CORE: tuple[ServedTool, ...] = (
    ServedTool(
        name="plan",
        description="Plan a request: write a plan of tasks with criteria and checks. Executes "
        "nothing. If it takes long, the answer is status `working` with the run.",
        scopes=_WORK,
        handle=starting.plan,
        input_schema=_object(
            "request",
            request=_REQUEST,
            ecko={**_FLAG, "description": "Specify the request first."},
            model=_text(most=200),
        ),
        output_schema=_result(**_STARTED, path="string", tasks="array", findings="array"),
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
        input_schema=_object(
            plan=_text("File, or folder of chains/.", 500),
            request=_REQUEST,
            only={**_TEXTS, "description": "Tasks; default: all."},
            **{"from": _text("Run whose completed tasks are reused.", 200)},
            model=_text(most=200),
            max_calls=_whole(),
            max_tokens=_whole(),
            max_cost={"type": "number", "minimum": 0},
            apply={
                "type": "string",
                "enum": list(APPLY_OPTIONS),
                "description": "Change the user's files; default: never.",
            },
        ),
        output_schema=_result(**_STARTED, tasks="object", questions="array"),
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
        input_schema=_object(run=_RUN, wait_seconds=_whole(0, 50)),
        output_schema=_result(**_STARTED, tasks="array"),
    ),
    ServedTool(
        name="report",
        description="Report of a run: proof of each criterion, failures, decisions.",
        scopes=_READ,
        handle=reading.report,
        input_schema=_object(
            run=_RUN, section=_text("Beginning of a heading.", 200), offset=_whole(0)
        ),
        output_schema=_result(run="string", text="string", characters="integer", next="string"),
    ),
    ServedTool(
        name="answer",
        description="Ask the user the open questions of agents. Give `answers` only with the "
        "user's words.",
        scopes=frozenset({"work", "answer"}),
        handle=writing.answer,
        input_schema=_object(
            questions={**_TEXTS, "description": "Ids; default: all."},
            answers={
                "type": "object",
                "description": "Question id to text.",
                "additionalProperties": True,
            },
        ),
        output_schema=_result(open="array", answered="array", refused="array", next="string"),
        is_read_only=False,
        is_idempotent=False,
    ),
    ServedTool(
        name="memory_search",
        description="Search accepted notes, lessons and past runs.",
        scopes=_READ,
        handle=reading.memory_search,
        input_schema=_object(
            "text", text=_text(most=1000, least=1), labels=_TEXTS, limit=_whole(1, 50)
        ),
        output_schema=_result(memories="array"),
    ),
    ServedTool(
        name="memory_add",
        description="Propose a note for the project's memory. The user accepts it.",
        scopes=frozenset({"work", "answer"}),
        handle=writing.memory_add,
        input_schema=_object(
            "text",
            text=_text(most=MAX_ANSWER, least=1),
            name=_text("Title.", 200),
            about={**_TEXTS, "description": "Node ids."},
        ),
        output_schema=_result(id="string", state="string"),
        is_read_only=False,
    ),
    ServedTool(
        name="inbox",
        description="Open questions to the user.",
        scopes=_READ,
        handle=reading.inbox,
        input_schema=_object(all={**_FLAG, "description": "Closed ones too."}),
        output_schema=_result(questions="array", notifications="array", proposals="array"),
    ),
)
"""In the order of the list."""

TOOL_SETS: Mapping[str, tuple[ServedTool, ...]] = {"core": CORE}
"""Name of a set → its tools."""
