"""Tools `plan` and `execute`: start a command that outlives the server, and wait."""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath

from mimir.domain.json_value import as_objects, as_text
from mimir.errors import ToolError
from mimir.mcp_server.project_access import ProjectAccess, StartedCommand
from mimir.mcp_server.tools.command_following import (
    find_error,
    list_objects,
    make_error,
    rest_before_run,
    wait_for_end,
    wait_for_events,
)
from mimir.mcp_server.tools.run_reading import (
    find_execution,
    find_planning,
    find_visible_run,
    load_status,
)
from mimir.mcp_server.tools.run_results import WORKING, describe_planning, describe_run
from mimir.mcp_server.tools.tool_values import EXECUTING, IncomingCall, ToolAnswer
from mimir.planning.format.slug import slug

PLAN_NAME = "chain-output.md"
_PLAN_MEMBERS = {
    "tasks": ("id", "title", "dependencies"),
    "findings": ("code", "severity", "message"),
}


async def plan(call: IncomingCall) -> ToolAnswer:
    """Plan a request in a run of its own."""
    given = call.arguments
    options = ["--ecko"] if given.values.get("ecko") is True else []
    options += _option("--model", given.text("model"))
    options += _option("--pattern", given.text("pattern"))
    started, path = _start_planning(call, "chain", options)
    run = await _wait_for_planning(call, started, path)
    await wait_for_end(started, call.wait, run)
    status = await load_status(call.project, call.principal, run)
    content = describe_planning(status, is_served=not started.has_ended)
    # A planning run that waits for the user has no plan yet, and its error is its questions.
    if started.has_ended and content["status"] != "paused":
        content |= _describe_plan(call.project, started)
    is_error = content["status"] in ("failed", "cancelled")
    task = run if content["status"] == WORKING else ""
    return ToolAnswer(content=content, is_error=is_error, task=task)


async def execute(call: IncomingCall) -> ToolAnswer:
    """Execute a plan, or plan and execute a request."""
    given = call.arguments
    if given.has("plan") == given.has("request"):
        raise ToolError(
            "execute needs either a plan or a request.",
            next_step='Give plan "chains/…", or request "…".',
        )
    options = ["--yes", f"--apply={given.text('apply', 'never')}"]
    options += [f"--only={','.join(given.texts('only'))}"] if given.texts("only") else []
    if given.has("from"):
        find = partial(find_visible_run, principal=call.principal, run=given.text("from"))
        options.append(f"--from={await call.project.read(find)}")
    options += _option("--model", given.text("model"))
    options += _option("--pattern", given.text("pattern"))
    for name in ("max_calls", "max_tokens", "max_cost"):
        if given.has(name):
            options.append(f"--{name.replace('_', '-')}={given.values[name]}")
    if given.has("request"):
        started, path = _start_planning(call, "execute", options)
        run = await _wait_for_planning(call, started, path)
    else:
        name = _require_plan(call.project.directory, given.text("plan"))
        started = call.project.start(["execute", name, "--json", *options], call.principal.name)
        run = await wait_for_events(call.project, started, call.wait)
    await wait_for_end(started, call.wait, run)
    # The plan of a request is executed by a run of its own.
    run = await find_execution(call.project, call.principal, run) or run
    status = await load_status(call.project, call.principal, run)
    content = describe_run(status, is_served=not started.has_ended)
    if started.has_ended and as_text(status.get("kind")) == "plan":
        # The planning has ended, and no run of its plan was created.
        error = find_error(call.project, started)
        content |= {"problem": error[0], "next": error[1] or content["next"]}
        return ToolAnswer(content=content, is_error=True)
    is_planning = as_text(status.get("kind")) == "plan"
    task = f"{run}{EXECUTING if is_planning else ''}" if content["status"] == WORKING else ""
    is_error = content["status"] in ("failed", "cancelled")
    return ToolAnswer(content=content, is_error=is_error, task=task)


def _start_planning(
    call: IncomingCall, command: str, options: Sequence[str]
) -> tuple[StartedCommand, str]:
    """Start a command with a request in a file; return it with the path of its plan."""
    request = call.arguments.text("request")
    if not request.strip():
        raise ToolError("The request is empty.", next_step="Write the request.")
    project = call.project
    folder = _reserve_folder(project.directory, request)
    # In a file: an argument may be too long, begin with a dash, or name another file.
    file = project.write_text(request)
    path = f"{folder}/{PLAN_NAME}"
    words = [
        command,
        f"@{file.relative_to(project.directory)}",
        "--json",
        f"--output={path}",
        *options,
    ]
    return project.start(words, call.principal.name, file), path


def _reserve_folder(project: Path, request: str) -> str:
    """Create the folder of a new plan, so that two calls never write one file."""
    if (project / "chains").is_symlink():
        raise ToolError("chains is a link: mimir follows no link of a repository.")
    name = slug(request)
    for number in itertools.count(1):
        folder = f"chains/{name}-{number}" if number > 1 else f"chains/{name}"
        try:
            (project / folder).mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("count never ends")


def _require_plan(project: Path, name: str) -> str:
    """Return the path of an existing plan inside of the project."""
    pure = PurePosixPath(name)
    is_inside = name and not pure.is_absolute() and ".." not in pure.parts
    for path in (name, f"chains/{name}") if is_inside else ():
        for file in (project / path / PLAN_NAME, project / path):
            if file.is_file() and file.resolve().is_relative_to(project.resolve()):
                # The prefix keeps a name with a dash from being an option.
                return f"./{file.relative_to(project)}"
    raise ToolError(
        f"There is no plan {name[:120]!r} in the project.",
        next_step="Name a file or a folder of chains/, or call plan first.",
    )


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value else []


async def _wait_for_planning(call: IncomingCall, started: StartedCommand, path: str) -> str:
    """Return the planning run that makes the plan `path`."""
    project = call.project
    while True:
        # Asked first: the run may appear between the two questions.
        ended = started.has_ended
        run = await find_planning(project, path)
        if run or ended:
            started.forget_inputs()
        if run:
            return run
        if ended:
            # Removed only if it is empty: the next call uses the name again.
            with suppress(OSError):
                (project.directory / path).parent.rmdir()
            raise make_error(project, started)
        await rest_before_run(call.wait)


def _describe_plan(project: ProjectAccess, started: StartedCommand) -> Mapping[str, object]:
    """Return the findings and tasks of a planning that has ended, or its error."""
    shape = next((one for one in reversed(list_objects(started)) if "findings" in one), None)
    if shape is None:
        problem, step = find_error(project, started)
        return {"problem": problem, "next": step} if problem else {}
    return {
        name: [{member: one.get(member) for member in members} for one in as_objects(shape[name])]
        for name, members in _PLAN_MEMBERS.items()
    }
