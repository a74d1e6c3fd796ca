"""A title cannot become anything but text in the diagram."""

import re

import pytest

from mimir.domain.task_states import TaskStatus
from mimir.reporting.render.mermaid import MOST_CHARS, DiagramNode, diagram


def shown(**given):
    node = {"id": "t", "title": "T", "status": TaskStatus.PENDING, **given}
    return diagram("run", [DiagramNode(**node)])


@pytest.mark.parametrize(
    "title",
    [
        '"]:::failed; click t0 "javascript:alert(1)"',
        "<script>alert(1)</script>",
        "a\nb --> c",
        "%%{init: {}}%%",
        "`x` | [y] {z} #quot; & ~",
        "\x1b]0;owned\x07",
    ],
)
def test_hostile_title_is_rendered_as_text(title):
    lines = shown(title=title)

    assert len(lines) == 4
    label = re.fullmatch(r'    t0\["(.*)"\]:::pending', lines[2])
    assert label
    assert re.fullmatch(r"t<br/>(?:[\w .,;:!?+*/()=-]|#\d+;)*<br/>pending", label[1])


def test_long_title_is_cut():
    (line,) = (line for line in shown(title="x" * 500) if "t0[" in line)

    assert f"<br/>{'x' * (MOST_CHARS - 1)}#8230;<br/>" in line


@pytest.mark.parametrize("status", list(TaskStatus))
def test_each_status_has_a_colour(status):
    lines = shown(status=status)

    name = lines[2].rpartition(":::")[2]
    assert [line for line in lines if line.startswith(f"    classDef {name} fill:#")]


def test_dependency_that_is_not_in_the_run_has_no_arrow():
    one = DiagramNode(id="a", title="A", status=TaskStatus.COMPLETED)
    two = DiagramNode(id="b", title="B", status=TaskStatus.BLOCKED, dependencies=("a", "gone"))

    arrows = [line for line in diagram("r", [one, two]) if "-->" in line]

    assert arrows == ["    t0 --> t1"]
