"""The examples in `chains/` and `generated-agents/`: files that a run of the demo wrote, read back by the product."""

from pathlib import Path

import pytest

from mimir.agents.preambles.agentinator import SECTIONS
from mimir.agents.preambles.frontmatter import split_frontmatter
from mimir.domain.agent import ALL_TOOLS
from mimir.planning.lint.plan_check import check
from mimir.planning.parser import parse_document
from scripts import examples

ROOT = Path(__file__).resolve().parents[2]
PLANS = sorted((ROOT / "chains").glob("*/chain-output.md"))
PREAMBLES = sorted((ROOT / "generated-agents").glob("*.md"))
REPORTS = sorted((ROOT / "chains").glob("*/execution-report.md"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_examples_of_every_kind_exist():
    assert PLANS
    assert PREAMBLES
    assert len(REPORTS) == len(PLANS)


@pytest.mark.parametrize("path", PLANS, ids=name_of)
def test_example_plan_is_read_without_an_error(path: Path):
    parsed = parse_document(path)
    assert not [one for one in check(parsed, tools=ALL_TOOLS) if one.severity == "error"]
    assert len(parsed.plan.tasks) > 1


@pytest.mark.parametrize("path", PREAMBLES, ids=name_of)
def test_example_preamble_has_its_front_matter_and_sections(path: Path):
    values, body = split_frontmatter(path.read_text(encoding="utf-8"), path.name)
    assert values["kind"] == path.name.split("-")[0]
    assert values["role"]
    assert [section for section in SECTIONS if f"## {section}" not in body] == []


@pytest.mark.parametrize("path", REPORTS, ids=name_of)
def test_example_report_names_the_outcome_and_the_seal(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Outcome: completed\n")
    assert "- Seal: `" in text


@pytest.mark.parametrize("path", [*PLANS, *PREAMBLES, *REPORTS], ids=name_of)
def test_example_names_no_directory_of_a_machine(path: Path):
    assert examples.LOCAL.search(path.read_text(encoding="utf-8")) is None
