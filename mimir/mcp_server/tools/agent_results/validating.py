"""The tool `validate_output`: the stored run decides, whatever response the caller gives."""

from dataclasses import replace

from mimir.domain.json_value import as_object, as_text
from mimir.errors import ToolError
from mimir.mcp_server.tools.command_following import list_objects, make_error, wait_for_end
from mimir.mcp_server.tools.run_reading import load_status
from mimir.mcp_server.tools.run_results import WORKING
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.tools.calls.arguments import ToolArguments

WAIT_SECONDS = 45.0
"""Wait of a client that polls tasks: a validation is no run, so it cannot be polled."""
_LISTS = {"requirements": "--requirement", "quality_criteria": "--quality", "checks": "--check"}


async def validate_output(call: IncomingCall) -> ToolAnswer:
    """Repeat checks and citations of an invocation, and recommend what to do with it."""
    given = call.arguments
    # A run of another principal is answered like an unknown one.
    status = await load_status(call.project, call.principal, _read_run(given))
    run = as_text(status.get("run"))
    if status.get("kind") != "agent":
        raise ToolError(f"{run} is not an invocation.", next_step=f'Call status with run "{run}".')
    words = ["validate", "--json"]
    for name, option in _LISTS.items():
        words += [f"{option}={one}" for one in given.texts(name)]
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
    return ToolAnswer(content=found[-1])


def _read_run(given: ToolArguments) -> str:
    """Return the run of a response; nothing else of a given response counts."""
    value = given.values.get("sub_agent_response")
    run = value if isinstance(value, str) else as_text(as_object(value).get("run"))
    if not run.strip():
        raise ToolError(
            "The response names no run.", next_step="Give the run of the invocation as a text."
        )
    return run
