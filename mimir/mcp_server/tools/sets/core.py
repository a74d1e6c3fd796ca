"""The tool set `core`: eight tools to plan, execute and read proof."""

from collections.abc import Mapping

from mimir.domain.json_value import JsonObject
from mimir.domain.question import MAX_ANSWER
from mimir.domain.run import APPLY_OPTIONS
from mimir.mcp_server.tools import reading, starting
from mimir.mcp_server.tools.sets.declarations import (
    FLAG,
    OPEN,
    TEXTS,
    arguments_of,
    import_later,
    read_tool,
    result_of,
    text,
    whole,
    work_tool,
)
from mimir.mcp_server.tools.tool_values import ServedTool
from mimir.orchestrator.patterns.choose import PATTERNS

_RUN = text("Run id or its beginning; default: the latest.", 200)
_PATTERN: JsonObject = {"type": "string", "enum": list(PATTERNS)}
_REQUEST = text(most=100_000, least=1)
_STARTED: Mapping[str, str] = {"run": "string", "status": "string", "next": "string"}


CORE: tuple[ServedTool, ...] = (
    work_tool(
        "plan",
        "Plan a request: write a plan of tasks with criteria and checks. Executes "
        "nothing. If it takes long, the answer is status `working` with the run.",
        starting.plan,
        arguments_of(
            "request",
            request=_REQUEST,
            ecko={**FLAG, "description": "Specify the request first."},
            model=text(most=200),
            pattern=_PATTERN,
        ),
        result_of(**_STARTED, path="string", tasks="array", findings="array"),
        is_idempotent=False,
        reaches_out=True,
    ),
    work_tool(
        "execute",
        "Execute a plan, or plan and execute a request. Agents work in isolated "
        "copies; executed checks decide what is completed. If it takes long, the answer is "
        "status `working` with the run.",
        starting.execute,
        arguments_of(
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
        result_of(**_STARTED, tasks="object", questions="array"),
        is_idempotent=False,
        is_destructive=True,
        reaches_out=True,
    ),
    read_tool(
        "status",
        "State of a run and its tasks; with wait_seconds, when it has stopped.",
        reading.status,
        arguments_of(run=_RUN, wait_seconds=whole(0, 50)),
        result_of(**_STARTED, tasks="array"),
    ),
    read_tool(
        "report",
        "Report of a run: proof of each criterion, failures, decisions.",
        reading.report,
        arguments_of(run=_RUN, section=text("Beginning of a heading.", 200), offset=whole(0)),
        result_of(run="string", text="string", characters="integer", next="string"),
    ),
    work_tool(
        "answer",
        "Ask the user the open questions of agents. Give `answers` only with the user's words.",
        import_later("writing", "answer"),
        arguments_of(
            questions={**TEXTS, "description": "Ids; default: all."},
            answers={**OPEN, "description": "Question id to text."},
        ),
        result_of(open="array", answered="array", refused="array", next="string"),
        is_idempotent=False,
        scopes=frozenset({"work", "answer"}),
    ),
    read_tool(
        "memory_search",
        "Search accepted notes, lessons and past runs.",
        reading.memory_search,
        arguments_of("text", text=text(most=1000, least=1), labels=TEXTS, limit=whole(1, 50)),
        result_of(memories="array"),
    ),
    work_tool(
        "memory_add",
        "Propose a note for the project's memory. The user accepts it.",
        import_later("writing", "memory_add"),
        arguments_of(
            "text",
            text=text(most=MAX_ANSWER, least=1),
            name=text("Title.", 200),
            about={**TEXTS, "description": "Node ids."},
        ),
        result_of(id="string", state="string"),
        scopes=frozenset({"work", "answer"}),
    ),
    read_tool(
        "inbox",
        "Open questions to the user.",
        reading.inbox,
        arguments_of(all={**FLAG, "description": "Closed ones too."}),
        result_of(questions="array", notifications="array", proposals="array"),
    ),
)
"""In the order of the list."""
