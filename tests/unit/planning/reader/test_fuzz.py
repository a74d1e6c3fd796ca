"""No text makes the reader fail or hang: neither words at random, nor spoilt plans, nor texts made to be slow."""

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mimir.planning import parser
from mimir.planning.format.diagnostics import CODES
from mimir.planning.lint.plan_check import check
from mimir.planning.renderer import render
from tests.support import layouts
from tests.support.broken_plans import WHOLE
from tests.support.plans import HOSTILE

SAMPLES = Path(__file__).with_name("samples")
DOCUMENTS = (
    WHOLE,
    *(path.read_text(encoding="utf-8") for path in sorted(SAMPLES.iterdir())),
    *(layout("Do it.") for layout in layouts.EVERY.values()),
)
PIECES = (
    *HOSTILE,
    "**Prompt:** ",
    "- **Dependencies:** t",
    "{",
    "[",
    "\t",
    "\ud800",
    "&a *a",
    "!!x",
    "NaN",
)


def read(text: str) -> parser.ParsedPlan:
    parsed = parser.parse_plan(text)
    lines = text.count("\n") + 1
    for one in check(parsed, tools=("run",), exists=lambda _: True):
        assert one.code in CODES
        assert 1 <= one.line <= lines
        assert one.column >= 1
        assert "\n" not in one.render("f")
    return parsed


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.one_of(st.text(max_size=20), st.sampled_from(PIECES)), max_size=30).map("\n".join)
)
@example("**Task ID:** a\n**Checks:**\n```yaml\n*a\n```")
def test_any_text_is_read(text: str):
    read(text)


def spoilt(chance: random.Random) -> str:
    text = chance.choice(DOCUMENTS)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text) + 1)
        lines = text.split("\n")
        line = chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[at + chance.randrange(60) :]
            case 1:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + chance.choice(DOCUMENTS)[: chance.randrange(400)] + text[at:]
            case 3:
                lines[line] = " " * chance.randrange(6) + lines[line]
                text = "\n".join(lines)
            case _:
                other = chance.randrange(len(lines))
                lines[line], lines[other] = lines[other], lines[line]
                text = "\n".join(lines)
    return text


@pytest.mark.parametrize("seed", range(80))
def test_damaged_plan_is_rendered_as_it_was_read(seed: int):
    plan = read(spoilt(random.Random(seed))).plan
    ids = [task.id.casefold() for task in plan.tasks]
    if all(ids) and len(set(ids)) == len(ids):
        assert parser.parse_plan(render(plan)).plan == plan


SIZE = 25_000
TASK = "**Task ID:** x\n**Prompt:** y\n"
SLOW = {
    "empty lines": ("", "\n"),
    "headings": ("", "# a\n"),
    "open prompts": ("", "<prompt>\n"),
    "open fences": ("", "```a\n"),
    "nested fences": ("", "```md\n```x\n```\n"),
    "prompts that end in their line": ("", "<prompt>\nx</prompt>\n"),
    "open details in a prompt": ("**Task ID:** x\n**Prompt:**\n", "<details>\n"),
    "open comments": ("", "<!-- a\n"),
    "prompts without ends": ("", "### a-b: c\n**Prompt:** x\n"),
    "headings in a prompt": (TASK, "# h\n"),
    "headings before a field": (TASK + "# h\n" * 10_000 + "**Dependencies:** a\n", ""),
    "prompts in one task": ("**Task ID:** x\n", "**Prompt:** a\n# h\n**Dependencies:** x\n"),
    "rules in a prompt": ("### Task 1: x\n**Prompt:** y\n", "#### h\n---\n"),
    "tasks": ("", "**Task ID:** x\n"),
    "a long dependency": (f"{TASK}**Dependencies:** ", "task-1 and "),
    "open brackets": (f"{TASK}**Dependencies:** ", "("),
    "dashes": (f"{TASK}**Dependencies:** ", "-"),
    "criteria": (f"{TASK}**Criteria:**\n- a\n", "    - a\n"),
    "a long criterion": (f"{TASK}**Criteria:**\n- ", "(1 pts) "),
    "numbers": (f"{TASK}**Time:** ", "1 "),
    "stars": ("", "*"),
    "hashes": ("# ", "# "),
    "one word": ("", "x"),
    "deep JSON": ("", "["),
    "wide JSON": ('{"tasks": [', "1,"),
    "a JSON text": ('{"tasks": ["', "a"),
    "deep YAML": (f"{TASK}**Checks:**\n```yaml\n", "["),
    "wide YAML": (f"{TASK}**Checks:**\n", "- run: x\n"),
    "slips of labels": (TASK, "**Dependecies:** x\n"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", SLOW)
def test_no_text_takes_more_than_linear_time(name: str):
    """The time limit is the assertion: each of these once took minutes, or would."""
    start, piece = SLOW[name]
    text = start + (piece * (SIZE // len(piece)) if piece else "")
    parser.parse_plan(text + ("\n```" if "```yaml" in start else ""))
