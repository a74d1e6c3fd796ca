"""Every command that a message names is executed: here, in a project where it makes sense, or by the named test."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

import mimir
from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.command_lines import commands_in, is_command, messages
from tests.support.whole_run import REST, Part, plan, step, wrote

ONE = plan(step("a"), title="One small file")
PM: Part = {"role": "pm", "turns": [{"text": render(ONE), "repeat": "forever"}]}

ELSEWHERE = {
    "answer": "test_questions.py",
    "inbox": "test_questions.py",
    "demo": "test_demo.py",
    "doctor --ask": "test_doctor.py",
    "init": "test_init.py",
    "ledger": "test_ledger.py",
    "mcp": "../trust/test_mcp_http.py",
    "memory": "test_memory_proposals.py",
    "prices": "test_prices.py",
    "status --store": "test_on_neo4j.py",
    "worker": "test_several_processes.py",
}
"""Command, with an option if only that is executed elsewhere → test file of this folder."""

JOURNEY = """
doctor
config set run.workers 2
config set llm.endpoints.local.api_key -
agents new helper
agents --all
agents show project:helper
agents trust project:helper --yes
agents trust --all --yes
preambles
preambles trust preambles/worker.md
check plan.md
chain 'Write one small file'
execute plan.md --yes --record run.jsonl
execute --yes
execute 'Write one small file' --yes
execute plan.md --from {done} --yes
replay run.jsonl --diff
runs --all
show {done}
show {done} --diff
show {done}/a --diff
show {done}/a/1
status {done}
report {done}
report {done} --full
verify {done}
execute plan.md --max-calls 1 --yes
pause {paused}
resume {paused} --max-calls 30 --record more.jsonl
execute plan.md --max-calls 1 --yes
resume --time-limit 30
cancel {paused}
apply {done} --completed --yes
apply {done} --markers --yes
clean --yes
"""
"""Command lines in order; `{done}` is a completed run, `{paused}` the newest one that was paused."""
ENDS = {"execute plan.md --max-calls 1 --yes": 75, "resume --time-limit 30": 75}
"""Exit codes other than 0: these runs pause at their limit of calls."""


def shape(line: str) -> frozenset[str]:
    """Return the command of a line and its options: the answers of `--yes` are given on a terminal."""
    command, *rest = re.split(r"\s+", line.removeprefix("mimir ").strip())
    parts = [word for word in rest if re.fullmatch(r"--[a-z-]+|-|trust|show|set|new", word)]
    return frozenset({command, *parts}) - {"--yes"}


def test_every_command_of_a_message_is_executed_by_a_test(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    desk.write("plan.md", render(ONE))
    desk.write("preambles/worker.md", "# Worker\n")
    desk.write("../script.yaml", yaml.safe_dump({"parts": [PM, wrote("a"), *REST]}))
    own = tmp_path / "own.toml"
    desk.environ(MIMIR_MODEL="play:../script.yaml", MIMIR_RUN__APPLY="never", MIMIR_CONFIG=own)
    executed: list[frozenset[str]] = []
    runs = {"done": "", "paused": ""}
    for line in JOURNEY.strip().splitlines():
        monkeypatch.setattr(sys, "stdin", io.StringIO("sk-test-0123456789\n"))
        said = desk.type(*shlex.split(line.format(**runs)))
        assert said.code == ENDS.get(line, 0), f"{line}: {said.out}{said.err}"
        executed.append(shape(line))
        if line.startswith("execute"):
            kind = "paused" if said.code else "done"
            runs[kind] = desk.type("runs", "--json").json["runs"][0]["run"]

    folder, missing = Path(mimir.__file__).parent, set[str]()
    tables = ("command_table.py", "completion.py", "names.py")
    for place, text, _ in messages(folder):
        for line in () if place.partition(":")[0].endswith(tables) else commands_in(text):
            wanted = shape(line)
            if is_command(line.split()[1]) and not any(wanted <= one for one in executed):
                missing.add(" ".join(line.split()[1:]))
    for line in missing:
        named = [file for key, file in ELSEWHERE.items() if shape(key) <= shape(line)]
        assert named, f"mimir {line} is executed by no test"
        text = (Path(__file__).parent / named[0]).read_text(encoding="utf-8")
        assert f'"{line.split()[0]}"' in text, f"{named[0]} does not execute mimir {line}"
