"""Requirements of a specification, and the criteria that name them."""

from mimir.domain.requirement import find_lost, find_named, read_specification

SECTIONS = "## Goal\n## Out of scope\n## Requirements\n{}\n## Assumptions\n## Open points\n"


def test_requirements_are_the_items_of_their_section():
    text = SECTIONS.format(
        "- R2: when b, then it shall c,\n  also on Mondays.\n* **R1:** When a, it shall b."
    )

    read = read_specification(f"- R9: when x, it shall y\n{text}")

    assert [(one.id, one.text) for one in read.requirements] == [
        ("R1", "When a, it shall b."),
        ("R2", "when b, then it shall c, also on Mondays."),
    ]
    assert read.problems == ()


def test_each_fault_of_a_form_is_named():
    read = read_specification("## Requirements\n- R1: it is fast\n- R1: when a, it shall b")

    assert len(read.requirements) == 1
    problems = " ".join(read.problems)
    for fault in ("'## Goal' is missing", "R1 occurs twice", "R1 does not have the form"):
        assert fault in problems
    assert "no requirement" in " ".join(read_specification("").problems)


def test_a_requirement_that_no_criterion_names_is_lost():
    requirements = read_specification(
        SECTIONS.format("- R1: when a, it shall b\n- R11: when c, it shall d")
    ).requirements

    assert [one.id for one in find_lost(requirements, ["R1: b", "R12 and xR11"])] == ["R11"]
    assert find_named("R1, R2 (r3)") == {"R1", "R2"}
