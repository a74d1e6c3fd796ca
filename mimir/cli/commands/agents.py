"""`mimir agents` and `mimir invoke`: look at agent definitions, trust and invoke them."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.commands import options as opt
from mimir.cli.session import DECLINED, CommandSession
from mimir.errors import PlanError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.registry.agent_files import AgentFiles
    from mimir.registry.catalogue import AgentEntry
    from mimir.settings.layers import LoadedSettings

FOREGROUND = "foreground"

All = Annotated[bool, typer.Option("--all", help="Also hidden and unusable definitions.")]
Address = Annotated[str, typer.Argument(metavar="ADDRESS", hidden=True)]
Addresses = Annotated[list[str] | None, typer.Argument(metavar="ADDRESS...", hidden=True)]
Paths = Annotated[list[str] | None, typer.Argument(metavar="PATH...", hidden=True)]
Matrix = Annotated[bool, typer.Option("--matrix", help="Print a table of compatibility.")]
Every = Annotated[bool, typer.Option("--all", help="Trust every usable definition of the project.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Trust without confirmation.")]
Kind = Annotated[str, typer.Option("--type", metavar="sdk|cli", help="Kind of the agent.")]
Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]
Prompt = Annotated[list[str], typer.Argument(metavar="PROMPT", hidden=True)]
Criteria = Annotated[
    list[str] | None, typer.Option("--criterion", metavar="TEXT", help="Criterion for QC.")
]
Checks = Annotated[
    list[str] | None, typer.Option("--check", metavar="CMD", help="Command that must pass.")
]
Deliverables = Annotated[
    list[str] | None,
    typer.Option(
        "--deliverable", metavar="PATH|TEXT", help="File to write; a text is one more criterion."
    ),
]
Files = Annotated[
    list[str] | None, typer.Option("--files", metavar="GLOB", help="Files that it may write.")
]
Tools = Annotated[str | None, typer.Option("--tools", metavar="A,B", help="Only these tools.")]
Material = Annotated[
    list[str] | None, typer.Option("--context", metavar="TEXT|@FILE", help="Text as material.")
]
ContextFiles = Annotated[
    list[str] | None, typer.Option("--context-file", metavar="PATH", help="File to show to it.")
]
Mode = Annotated[
    str,
    typer.Option(
        "--mode", metavar="foreground|ping|trust", help="Whether to wait; ping and trust do not."
    ),
]
ToolCalls = Annotated[
    int | None,
    typer.Option("--max-tool-calls", metavar="N", min=1, max=200, help="Tool calls of the agent."),
]
Timeout = Annotated[
    int | None, typer.Option("--timeout", metavar="S", min=10, max=7200, help="Seconds of work.")
]

Refines = Annotated[
    str, typer.Option("--refines", metavar="RUN", help="Invocation whose result it improves.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Start it even if its session had a similar task.")
]
Strict = Annotated[
    bool, typer.Option("--strict-citations", help="Exit 1 if a citation is not verified.")
]
Schema = Annotated[
    str, typer.Option("--schema", metavar="@FILE", help="JSON Schema of the answer.")
]


def list_agents(session: CommandSession, every: All = False) -> int:
    """List the agent definitions of the project, the user and mimir.

    A definition of the project gets the default tools, which only read, until you trust it.
    """
    from mimir.bootstrap.clock import SystemClock
    from mimir.cli.output import agent_pages
    from mimir.registry.listing import shape_entry

    clock = SystemClock()
    started = clock.monotonic()
    entries = _open(session).load().entries
    seconds = round(clock.monotonic() - started, 3)
    shapes = [shape_entry(one) for one in entries if every or not one.hidden_by]
    shape = {"agents": shapes, "files": len(entries), "seconds": seconds}
    console = session.console
    lines = agent_pages.list_lines(entries, console.width, console.glyphs.cut, every=every)
    return session.show(shape, *lines)


def show(session: CommandSession, address: Address) -> int:
    """Show a definition: prompt, requested and granted tools, findings."""
    from mimir.cli.output import agent_pages

    files = _open(session)
    entry = files.load().find(address)
    if session.json:
        from mimir.registry.listing import shape_definition, shape_entry

        own = shape_definition(entry.definition)
        session.console.json({"schema": 1, **shape_entry(entry), **own})
    else:
        session.console.page("\n".join(agent_pages.entry_page(entry, session.console.width)))
        for sentence in files.pin_skills(entry)[1]:
            session.console.note(f"warning: {sentence}")
    return 0


def check(session: CommandSession, paths: Paths = None, matrix: Matrix = False) -> int:
    """Check agent files and skills.

    PATH is a file or a directory; default: the places of the project. The exit code is 65 if a
    file has an error.
    """
    from mimir.cli.output import agent_pages

    found = _open(session).check(paths or [])
    if session.json:
        from mimir.attempts.agent_answers.form_trial import try_form
        from mimir.registry.listing import shape_checked, shape_findings

        shape = {
            "files": [shape_checked(one, try_form(one.output_schema)) for one in found],
            "findings": list(shape_findings(found)),
        }
        session.console.json({"schema": 1, **shape})
    elif matrix:
        session.console.say("\n".join(agent_pages.matrix_lines(found, session.console.width)))
    else:
        session.console.say("\n".join(agent_pages.check_lines(found)))
    return PlanError.exit_code if any(one.has_errors for one in found) else 0


def trust(
    session: CommandSession, addresses: Addresses = None, every: Every = False, yes: Yes = False
) -> int:
    """Trust definitions of the project, and its skills that they name, as they are now.

    Each is shown first. A later change of its file removes the trust.
    """
    from mimir.cli.output import agent_pages

    files = _open(session)
    chosen = _choose(files, addresses or [], every=every)
    if not chosen:
        session.console.say("The project has no definition that can be trusted.")
        return 0
    skills = {one.path: one for entry in chosen for one in files.list_unapproved_skills(entry)}
    for entry in chosen:
        session.console.say("\n".join(agent_pages.entry_page(entry, session.console.width)))
    for one in skills.values():
        session.console.say("\n".join(agent_pages.skill_page(one, session.console.width)))
    if not yes:
        session.console.require_terminal(
            next_step="Read each definition, then trust it without confirmation: --yes"
        )
        noun = "this definition" if len(chosen) == 1 else f"these {len(chosen)} definitions"
        if not session.run(session.console.ask(f"Trust {noun}?")):
            session.console.note("Nothing is trusted.")
            return DECLINED
    own = [one.definition.source for one in chosen if one.definition.source.location == "project"]
    for one in (*own, *skills.values()):
        files.trust.add(one.hash, one.path)
        session.console.say(f"trusted: {one.path} ({one.hash[:12]})")
    return 0


def new(session: CommandSession, name: Name, kind: Kind = "sdk") -> int:
    """Create the two files of a definition in .agents/agents/NAME, and print their paths."""
    from mimir.registry.formats.agent_reader import slug_of

    plain = name.replace("_", "-")
    if slug_of(plain) != plain:
        raise UsageError(
            f"The name {name[:80]!r} has other signs than a-z, 0-9, '-' and '_'.",
            next_step=f"Use: mimir agents new {slug_of(name) or 'my-agent'}",
        )
    if kind not in ("sdk", "cli"):
        raise UsageError(f"{kind[:40]!r} is no kind of agent.", next_step="Use --type sdk or cli.")
    folder = session.project / ".agents" / "agents" / name
    if folder.exists():
        raise UsageError(
            f"{folder} exists.", next_step=f"Read it: mimir agents show project:{plain}"
        )
    folder.mkdir(parents=True)
    own = "program: claude\n" if kind == "cli" else "tools: [Read, Glob, Grep]\n"
    written = {
        "config.yaml": f'name: {name}\ntype: {kind}\ndescription: "One sentence about the task of {name}."\n{own}',
        "prompt.md": f"# {name}\n\nDescribe the task of this agent, its method and its result.\n",
    }
    for file, text in written.items():
        (folder / file).write_text(text, encoding="utf-8")
        session.console.say(str(folder / file))
    session.console.note(f"next: mimir agents show project:{name.replace('_', '-')}")
    return 0


def invoke(
    session: CommandSession,
    address: Address,
    prompt: Prompt,
    criterion: Criteria = None,
    check: Checks = None,
    deliverable: Deliverables = None,
    files: Files = None,
    tools: Tools = None,
    material: Material = None,
    context_file: ContextFiles = None,
    max_tool_calls: ToolCalls = None,
    timeout: Timeout = None,
    schema: Schema = "",
    strict_citations: Strict = False,
    max_calls: opt.MaxCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    model: opt.Model = None,
    apply: opt.ApplyMode = "never",
    record: opt.Record = None,
    mode: Mode = FOREGROUND,
    refines: Refines = "",
    force: Force = False,
) -> int:
    """Invoke an agent for one task, as a run with one task.

    PROMPT is text, "-" for standard input, or @FILE. Criteria, checks and deliverables decide
    the result; without any the agent only reads, and answers. The result is not applied without
    --apply.
    """
    from dataclasses import replace

    from mimir.cli import arguments
    from mimir.cli.commands.plan_commands import run_limits
    from mimir.cli.output.run_progress import run_and_show
    from mimir.domain.invocation import InvocationRequest
    from mimir.orchestrator.delegation.response import is_success
    from mimir.orchestrator.delegation.task_building import (
        InvocationLimits,
        build_plan,
        require_usable,
    )
    from mimir.registry.agent_files import hash_file

    if mode not in (FOREGROUND, "ping", "trust"):
        raise UsageError(
            f"{mode[:40]!r} is no mode.", next_step="Use --mode foreground, ping or trust."
        )
    if record and mode != FOREGROUND:
        raise UsageError("Only an invocation in the foreground can be recorded: leave --mode out.")
    session.record = record
    limits = {"run.max_calls": max_calls, "run.max_tokens": max_tokens, "run.apply": apply}
    cost = None if max_cost is None else arguments.amount(max_cost)
    flags = {**limits, "run.max_cost": cost}
    entry = _open(session, session.load(flags)).load().find(address)
    # A model that the caller names precedes that of the definition.
    entry = replace(entry, model="") if model else entry
    # The model of a program is none of mimir's.
    is_program = entry.definition.kind == "cli"
    loaded = session.load(flags if is_program else {**flags, "llm.model": model})
    # A path has no white space.
    texts = [one for one in deliverable or () if len(one.split()) > 1]
    request = InvocationRequest(
        prompt=arguments.read_request(prompt, session.project),
        criteria=(*(criterion or ()), *texts),
        checks=tuple(check or ()),
        deliverables=tuple(one for one in deliverable or () if one not in texts),
        files=tuple(files or ()),
        tools=None if tools is None else tuple(name.strip() for name in tools.split(",")),
        context=tuple(arguments.read_request([text], session.project) for text in material or ()),
        context_files=tuple(context_file or ()),
        max_tool_calls=max_tool_calls,
        timeout_seconds=timeout,
        output_schema=_read_schema(session, schema),
        refines=refines,
        is_forced=force,
    )
    own = loaded.settings.agents
    require_usable(entry, request)
    program = None
    if is_program:
        from mimir.bootstrap.agents.programs import pin_program

        program = pin_program(entry.definition, entry.address, own, model=model or "")
    seconds = own.program_timeout_seconds if program else own.timeout_seconds
    skills, refused = _open(session, loaded).pin_skills(entry)
    for sentence in refused:
        session.console.note(f"warning: {sentence}")
    plan, definition = build_plan(
        entry,
        request,
        InvocationLimits(tool_calls=own.tool_calls, timeout_seconds=seconds),
        lambda path: hash_file(session.project, path),
        program=program,
        skills=() if program else skills,
    )
    session.require_model(loaded)

    async def job() -> int:
        async with session.open(loaded) as mimir:
            budget = run_limits(loaded)
            run = await mimir.create_invocation(plan, definition, limits=budget, request=request)
            if place := await mimir.find_queue_place(run):
                return _report_queued(session, run, place)
            if mode != FOREGROUND:
                return _detach(session, run, "" if is_program else model or "")
            code = await run_and_show(
                session, mimir, loaded, run, limits=budget, apply=apply, resumed=False
            )
            response = await mimir.response(run)
            if session.json:
                session.console.json({"event": "AgentAnswered", **response})
            else:
                from mimir.cli.output import agent_pages

                session.console.say(
                    "\n".join(agent_pages.response_lines(response, session.console.width))
                )
            # A completed run may have an answer of another form.
            return code or int(not is_success(response, strict_citations=strict_citations))

    return session.run(job())


def _report_queued(session: CommandSession, run: str, place: int) -> int:
    """Print the place of an invocation in the queue; the agent that ends starts it."""
    if session.json:
        shape = {"event": "AgentQueued", "run": run, "status": "queued", "queue_position": place}
        session.console.json({**shape, "next": f"mimir status {run}"})
    else:
        session.console.say(f"queued: {run} (place {place})")
        session.console.say(f"next: mimir status {run}")
    return 0


def _detach(session: CommandSession, run: str, model: str) -> int:
    """Start a worker process of a run, and print where it is followed."""
    from mimir.bootstrap.agents.detached_worker import start_worker

    log = str(start_worker(session.project, run, model=model, store=session.store))
    if session.json:
        shape = {"event": "AgentInvoked", "run": run, "status": "working", "log": log}
        session.console.json({**shape, "next": f"mimir status {run}"})
    else:
        session.console.say(f"working: {run}")
        session.console.say(f"log: {log}")
        session.console.say(f"next: mimir status {run}")
    return 0


def _read_schema(session: CommandSession, argument: str) -> str:
    """Return the JSON Schema that `@FILE` names, as JSON text; empty: none is named."""
    if not argument:
        return ""
    import json

    from mimir.cli import arguments
    from mimir.registry.answer_schema import check_schema

    text = arguments.read_request([argument], session.project)
    try:
        schema: object = json.loads(text)
    except (ValueError, RecursionError):
        raise PlanError(
            "The schema of the answer is not JSON.", next_step="Give a file: --schema @FILE"
        ) from None
    if reason := check_schema(schema):
        raise PlanError(
            f"The schema of the answer is refused: {reason}.",
            next_step="Use local references only, and at most ten levels.",
        )
    return json.dumps(schema)


def _choose(
    files: "AgentFiles", addresses: "Sequence[str]", *, every: bool
) -> "Sequence[AgentEntry]":
    """Return the untrusted definitions of the project to trust."""
    if bool(addresses) == every:
        raise UsageError(
            "Name the definitions to trust, or give --all, not both.",
            next_step="List them: mimir agents --all",
        )
    catalogue = files.load()
    if every:
        own = [one for one in catalogue.entries if one.definition.source.location == "project"]
        return [
            one for one in own if one.definition.is_usable and not one.definition.source.is_trusted
        ]
    chosen = [catalogue.find(address) for address in addresses]
    for one in chosen:
        if one.definition.source.location != "project" and not files.list_unapproved_skills(one):
            raise UsageError(
                f"{one.address!r} is not a definition of the project; it needs no trust.",
                next_step="List the definitions: mimir agents --all",
            )
        if one.definition.has_errors:
            raise PlanError(
                f"{one.address!r} has errors and cannot be trusted.",
                next_step=f"See: mimir agents show {one.address}",
            )
    return chosen


def _open(session: CommandSession, loaded: "LoadedSettings | None" = None) -> "AgentFiles":
    from mimir.bootstrap.agents.definition_files import open_agent_files

    return open_agent_files(session.project, loaded or session.load())
