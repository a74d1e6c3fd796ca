"""Scenes of invocations that die: an agent of mimir with tools, and a program, each with one retry."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.agent_corpus import answer
from tests.support.crash.crash_site import Scene
from tests.support.whole_run import REST, calls, worker, writes

PROGRAM = """#!/usr/bin/python3
import json, os, sys
if "--version" in sys.argv:
    raise SystemExit(print("1.0"))
task = sys.stdin.read()
# Remains of an earlier run would be visible here.
with open("out.txt", "a") as out:
    out.write("42\\n" if "Attempt 2" in task else "41\\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done.",
    "usage": {"input_tokens": 10, "output_tokens": 1}}))
"""
TASK = ("Write 42 to out.txt.", "--check", "grep -q 42 out.txt", "--files", "out.txt")
_SHOWN = {"calls": [calls("run", command="cat out.txt")]}
_WORK = (
    {**worker("task-1", writes("out.txt", "41\n"), _SHOWN, answer("Done.")), "attempt": 1},
    {**worker("task-1", writes("out.txt", "42\n"), "No form.", answer("Right.")), "attempt": 2},
)
AGENT = Scene(
    plan="# Not used\n",
    play={"parts": [*_WORK, *REST]},
    workers=1,
    invokes=("general_purpose", *TASK),
)
CLI = Scene(plan="# Not used\n", play={"parts": [*REST]}, workers=1, invokes=("claude_code", *TASK))


def install_program(folder: Path) -> Mapping[str, str]:
    """Write the program of `CLI`, and return the environment that finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "claude"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}
