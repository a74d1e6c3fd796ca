"""Every command block of the documents is executed by a test; the table below names the others, with the reason."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from mimir.planning.renderer import render
from tests.acceptance.test_demo import GUIDES
from tests.support.agent_corpus import answer
from tests.support.cli_runner import Desk
from tests.support.whole_run import REST, Part, plan, step, writes, wrote

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/agents.md", "docs/neo4j.md", "docs/results.md")
"""Executed below; `GUIDES` of `docs` are executed from the wheel."""
NOT_RUN = {
    r"make |export ": "targets of the repository, which CI runs; variables",
    r"xdg-open ": "needs a browser",
    r"mimir (demo --store|migrate \S+) (bolt|neo4j)": "needs a Neo4j server: test_on_neo4j.py runs the like",
    r"mimir invoke claude_code ": "needs another program: test_program_agents.py runs the like",
    r"mimir init ": "needs a real provider: test_init.py runs the like against a scripted endpoint",
    r"(npm|go|cargo|mvn|\.venv/bin/python -m pip) |git submodule": "needs a registry of packages, or a remote",
    r"python -m venv|cd packages/app|mimir doctor$": "needs the project of the reader: the first run has doctor",
}
"""Beginning of lines that no test executes → reason."""
REVIEWER = """---
name: reviewer
description: Reviews a change for correctness.
tools: Read, Grep, Edit
model: sonnet
---

You review one change. Report each fault with file and line.
"""
ASKING = {"execute", "trust"}
"""Commands that ask on a terminal; `--yes` answers here."""
TEST = "from src.money import cents\n\n\ndef test_cents():\n    assert cents(0.29) == 29\n"
WRONG, RIGHT = (f"def cents(x):\n    return {way}(x * 100)\n" for way in ("int", "round"))


def lines_of(page: Path) -> list[str]:
    """Return the lines of the command blocks of a page, without comments."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [
        line
        for block in blocks
        for one in block.splitlines()
        if (line := re.sub(r"\s+#.*", "", one))
    ]


def reason(line: str) -> str:
    """Return why no test executes a line; empty: one does."""
    return next((why for start, why in NOT_RUN.items() if re.match(start, line)), "")


def test_every_line_of_a_command_block_is_executed_or_has_a_reason():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    executed = {ROOT / name for name in (*PAGES, *(f"docs/{guide}.md" for guide in GUIDES))}
    silent = [
        f"{page.name}: {line}"
        for page in pages
        for line in lines_of(page)
        if page not in executed and not reason(line)
    ]
    assert silent == []
    listed = [line for page in pages for line in lines_of(page)]
    assert [start for start in NOT_RUN if not any(re.match(start, line) for line in listed)] == []


def test_the_pages_about_projects_agents_results_and_stores_work_line_by_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    desk.write(".claude/agents/reviewer.md", REVIEWER)
    for path, text in (("src/money.py", WRONG), ("test_money.py", TEST), ("conftest.py", "")):
        desk.write(path, text)
    works = {
        "invoke general_purpose": ("SUMMARY.md", "# Summary\n"),
        "invoke reviewer": ("src/money.py", RIGHT),
    }
    plan_of_readme = render(plan(step("a"), title="One small file"))
    pm: Part = {"role": "pm", "turns": [{"text": plan_of_readme, "repeat": "forever"}]}
    desk.write("../script.yaml", yaml.safe_dump({"parts": [pm, wrote("a"), *REST]}))
    desk.environ(MIMIR_MODEL="play:../script.yaml")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    run = ""
    lines = [line for page in PAGES for line in lines_of(ROOT / page)]
    for line in " && ".join(lines).split(" && "):
        if reason(line):
            continue
        words = shlex.split(line.partition(" > ")[0].replace("RUN", run))[1:]
        work = works.get(" ".join(words[:2]))
        if work:
            part: Part = {
                "role": "worker",
                "turns": [writes(*work), answer(f"{work[0]} is written.")],
            }
            desk.write("../script.yaml", yaml.safe_dump({"parts": [part, *REST]}))
        said = desk.type(*words, *(["--yes"] if ASKING.intersection(words) else []))
        assert said.code == 0, f"{line}: {said.out}{said.err}"
        if work:
            run = desk.type("runs", "--json").json["runs"][0]["run"]
    assert (desk.project / "src/money.py").read_text(encoding="utf-8") == RIGHT
    assert (desk.project / "team.db").is_file()
