"""`mimir demo delegate`: a primary agent spawns two specialists, and reads the proof."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from mimir.demo import setup
from mimir.demo.delegation.server_process import ServerConnection, serve
from mimir.demo.screen import NarratorScreen, say_wrapped
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts
from mimir.settings.principal import isolated_environment

PLAY = Path(__file__).with_name("delegate.yaml")
REVIEWER = ".claude/agents/reviewer.md"
DEFINITION = """---
name: reviewer
description: Reviews a change for correctness.
tools: Read, Grep
---

You review code. Cite the line that each statement rests on.
"""
REVIEW = "How does tally read a line of the log, and what does it do with a broken one?"
WRITE = "Write FIELDS.md: the number of fields of a line of the access log."
CHECK = "grep -q '5 fields' FIELDS.md"
HINT = "A line has time, method, path, status and ms. The earlier FIELDS.md missed one of them."

Answer = Mapping[str, object]


async def run_delegation(screen: NarratorScreen, *, directory: Path | None, store: str) -> int:
    """Run the demo; the exit code is 0 if each specialist ends as it must."""
    project = await setup.build(directory)
    (project / REVIEWER).parent.mkdir(parents=True)
    (project / REVIEWER).write_text(DEFINITION, encoding="utf-8")
    screen.say(f"project  {project}")
    own = tempfile.TemporaryDirectory(prefix="mimir-demo-settings-")
    with own as folder:
        # The user's own models must never be called by the demo.
        settings = Path(folder) / "mimir.toml"
        settings.write_text(f'[llm]\nmodel = "play:{PLAY}"\n', encoding="utf-8")
        async with serve(project, store, isolated_environment(settings)) as server:
            tools = await server.list_tools()
            say_wrapped(screen, "server   ", f"mimir mcp, {len(tools)} tools over a pipe")
            is_caught = await _review(screen, server)
            is_refined = await _write(screen, server)
            session = await server.call("get_agent_status")
    used, left = session.get("total_calls"), session.get("calls_left")
    say_wrapped(screen, "session  ", f"{used} specialists were spawned; {left} calls are left")
    say_wrapped(screen, "next     ", f"cd {project}; mimir runs; mimir mcp config claude")
    return 0 if is_caught and is_refined else 1


async def _review(screen: NarratorScreen, server: ServerConnection) -> bool:
    """Spawn a reviewer, one of whose citations is invented."""
    response = await _spawn(screen, server, chatmode="project:reviewer", task=REVIEW)
    citations = as_object(as_object(response.get("assurance")).get("citations"))
    count = f"{citations.get('verified')} of {citations.get('total')} citations verified"
    say_wrapped(screen, "cited    ", count)
    for one in as_texts(citations.get("unverified")):
        say_wrapped(screen, "caught   ", one)
    checked = await server.call("validate_output", sub_agent_response=response.get("run"))
    decision = as_text(checked.get("decision_recommendation"))
    say_wrapped(screen, "validate ", f"mimir recommends: {decision}")
    for issue in as_objects(checked.get("identified_issues")):
        text = f"{issue.get('severity')}: {issue.get('description')}"
        say_wrapped(screen, "issue    ", text)
    screen.say("")
    return bool(citations.get("unverified")) and decision == "refine"


async def _write(screen: NarratorScreen, server: ServerConnection) -> bool:
    """Spawn a writer whose work fails its check, and refine it."""
    given: dict[str, object] = {
        "chatmode": "general_purpose",
        "task": WRITE,
        "expected_deliverables": ["FIELDS.md"],
        "checks": [CHECK],
    }
    first = await _spawn(screen, server, **given)
    error = as_object(first.get("error")).get("message") or "its check is red"
    say_wrapped(screen, "caught   ", f"{CHECK!r}: {error}")
    say_wrapped(screen, "refine   ", HINT)
    second = await _spawn(screen, server, **given, refines=first.get("run"), context=HINT)
    screen.say("")
    return first.get("status") == "partial" and second.get("status") == "completed"


async def _spawn(screen: NarratorScreen, server: ServerConnection, **given: object) -> Answer:
    """Spawn a specialist, wait for its response, and print it."""
    say_wrapped(screen, "spawn    ", f"{given['chatmode']}: {given['task']}")
    response = await server.call("spawn_agent", **given)
    # On a busy machine the call ends before the work.
    while response.get("status") in ("working", "queued"):
        response = await server.call(
            "get_agent_output", session_id=response.get("run"), wait_seconds=45
        )
    proof = as_object(response.get("assurance"))
    status = response.get("status") or response.get("problem")
    say_wrapped(screen, "status   ", f"{status}, assurance {proof.get('level')}")
    say_wrapped(screen, "run      ", as_text(response.get("run")))
    return response
