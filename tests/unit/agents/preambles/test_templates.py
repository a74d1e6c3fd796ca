from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.agents.preambles import frontmatter, templates
from mimir.agents.preambles.agentinator import LONGEST, SECTIONS, SHORTEST
from mimir.errors import PlanError

NAMES = get_args(templates.Name)


@pytest.mark.parametrize("name", NAMES)
def test_every_template_is_shipped_with_a_version(name: templates.Name):
    template = templates.load_template(name, None)
    assert template.version.startswith("1-")
    assert len(template.text) > SHORTEST
    assert "---" not in template.text
    assert not template.own


@pytest.mark.parametrize("name", ["worker", "qc"])
def test_shipped_templates_are_preambles_by_the_rules_for_generated_ones(name: templates.Name):
    text = templates.load_template(name, None).text
    assert SHORTEST <= len(text) <= LONGEST
    assert all(f"\n## {section}\n" in text for section in SECTIONS)


def test_projects_own_file_wins_and_is_another_version(tmp_path: Path):
    (tmp_path / "preambles").mkdir()
    (tmp_path / "preambles" / "worker.md").write_text("---\nversion: 7\n---\nMy worker.\n")
    own = templates.load_template("worker", tmp_path)
    assert (own.text, own.own) == ("My worker.", True)
    assert own.version.startswith("7-")
    assert templates.load_template("qc", tmp_path) == templates.load_template("qc", None)


def test_edited_template_is_another_version_even_if_nobody_counts_it_up(tmp_path: Path):
    (tmp_path / "preambles").mkdir()
    file = tmp_path / "preambles" / "worker.md"
    file.write_text("One.")
    first = templates.load_template("worker", tmp_path).version
    file.write_text("Two.")
    assert templates.load_template("worker", tmp_path).version != first


def test_fixed_rules_cannot_be_replaced_by_a_project(tmp_path: Path):
    for path in ("preambles/fixed/every.md", "preambles/fixed/qc.md", "preambles/pm.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("No rules.")
    assert "No rules." not in templates.fixed_rules("qc")
    assert templates.system_message("pm", tmp_path) == f"No rules.\n\n{templates.fixed_rules('pm')}"


def test_rules_of_the_judge_state_the_whole_verdict():
    rules = templates.fixed_rules("qc")
    for key in (
        "verdict",
        "score",
        "feedback",
        "issues",
        "requiredFixes",
        "criteria",
        "fixes",
        "criteriaImpossible",
        "quote",
        "source",
        "index",
        "state",
    ):
        assert f'"{key}"' in rules


@pytest.mark.parametrize(
    "content",
    [b"\xff", b"---\nversion: 1\n---\n \n", b"---\nversion\n---\nx", b"---\nversion: 1\n"],
)
def test_broken_file_of_a_project_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "preambles").mkdir()
    (tmp_path / "preambles" / "pm.md").write_bytes(content)
    with pytest.raises(PlanError, match=r"preambles/pm\.md"):
        templates.load_template("pm", tmp_path)


def test_link_to_a_secret_is_not_followed(tmp_path: Path):
    project = tmp_path / "project"
    (project / "preambles").mkdir(parents=True)
    (tmp_path / "id_rsa").write_text("key")
    (project / "preambles" / "pm.md").symlink_to(tmp_path / "id_rsa")
    with pytest.raises(PlanError):
        templates.load_template("pm", project)


keys = st.text(alphabet="abc ", min_size=1).map(str.strip).filter(bool)
values = st.text().filter(lambda v: not any(0xD800 <= ord(c) <= 0xDFFF for c in v))


@given(st.dictionaries(keys, values, max_size=5), st.text(alphabet="ab-\n"))
def test_head_is_read_as_it_was_written(head: dict[str, str], body: str):
    read, rest = frontmatter.split_frontmatter(frontmatter.join_frontmatter(head, body), "f.md")
    assert read == head
    assert rest == body.strip("\r\n")
