"""Demo of agents: a reviewer's citations are looked up, and a program's work is checked."""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from mimir.bootstrap import app
from mimir.bootstrap.agents.definition_files import open_agent_files
from mimir.demo import setup
from mimir.demo.screen import NarratorScreen, say_wrapped
from mimir.domain.invocation import InvocationRequest
from mimir.domain.json_value import as_object, as_text, as_texts
from mimir.domain.program import PinnedProgram, ProgramPreset
from mimir.domain.run import RunBudget
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.delegation.task_building import InvocationLimits, build_plan
from mimir.registry.agent_files import hash_file
from mimir.registry.catalogue import AgentEntry
from mimir.settings.layers import LoadedSettings

PLAY = Path(__file__).with_name("agents.yaml")
STAND_IN = Path(__file__).with_name("stand_in.py")
REVIEWER = ".claude/agents/reviewer.md"
DEFINITION = """---
name: reviewer
description: Reviews a change for correctness.
tools: Read, Grep, Edit
model: sonnet
---

You review code. Cite the line that each statement rests on.
"""
QUESTION = "How does tally read a line of the log, and what does it do with a broken one?"
TASK = "Write FIELDS.md: the number of fields of a line of the access log."
CHECK = "grep -q '5 fields' FIELDS.md"
LIMITS = InvocationLimits(tool_calls=20, timeout_seconds=60)


async def run_agents(screen: NarratorScreen, *, directory: Path | None, store: str) -> int:
    """Run both invocations; the exit code is 0 if each ends as it must."""
    project = await setup.build(directory)
    (project / REVIEWER).parent.mkdir(parents=True)
    (project / REVIEWER).write_text(DEFINITION, encoding="utf-8")
    loaded = setup.settings(project, store, PLAY)
    catalogue = open_agent_files(project, loaded).load()
    screen.say(f"project  {project}")
    programs = tempfile.TemporaryDirectory(prefix="mimir-demo-program-")
    with programs as folder:
        async with app.open(project, loaded, say=screen.say) as mimir:
            ask = partial(_invoke, screen, mimir, project, loaded)
            say_wrapped(screen, "agent    ", f"{REVIEWER}, not trusted: it may only read")
            reviewer = catalogue.find("project:reviewer")
            is_caught = await ask(reviewer, InvocationRequest(prompt=QUESTION), None)
            say_wrapped(screen, "agent    ", "claude_code, whose program is replaced by a script")
            request = InvocationRequest(prompt=TASK, checks=(CHECK,), deliverables=("FIELDS.md",))
            is_done = await ask(
                catalogue.find("claude_code"), request, _install_stand_in(Path(folder))
            )
    return 0 if is_caught == "answered" and is_done == "completed" else 1


def _install_stand_in(folder: Path) -> PinnedProgram:
    # In a folder of its own: the sandbox shows the folder of a program.
    place = folder / "stand-in"
    place.write_bytes(STAND_IN.read_bytes())
    place.chmod(0o755)
    preset = ProgramPreset(name="stand-in", command=(str(place),), output="claude")
    return PinnedProgram(preset=preset)


async def _invoke(
    screen: NarratorScreen,
    mimir: Mimir,
    project: Path,
    loaded: LoadedSettings,
    entry: AgentEntry,
    request: InvocationRequest,
    program: PinnedProgram | None,
) -> str:
    """Invoke an agent and print its response; return its status."""
    say_wrapped(screen, "task     ", request.prompt)
    plan, definition = build_plan(
        replace(entry, model=""),
        request,
        LIMITS,
        lambda path: hash_file(project, path),
        program=program,
    )
    run = await mimir.create_invocation(plan, definition, limits=RunBudget(), request=request)
    await mimir.drive(
        run,
        workers=loaded.settings.run.workers,
        apply="never",
        limits=RunBudget(),
        resumed=False,
    )
    response = await mimir.response(run)
    proof, work = as_object(response.get("assurance")), as_object(response.get("metadata"))
    citations = as_object(proof.get("citations"))
    status = as_text(response.get("status"))
    say_wrapped(screen, "status   ", f"{status}, assurance {proof.get('level')}")
    if citations.get("total"):
        count = f"{citations.get('verified')} of {citations.get('total')} citations verified"
        say_wrapped(screen, "cited    ", count)
    for one in as_texts(citations.get("unverified")):
        say_wrapped(screen, "caught   ", one)
    if request.checks:
        words = f"{work.get('attempts')} attempts: the check {CHECK!r} rejected the first one"
        say_wrapped(screen, "caught   ", words)
    screen.say(f"run      {run}")
    screen.say("")
    return status
