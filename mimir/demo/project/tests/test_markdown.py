"""Release 0.2: a table that can be pasted into an issue."""

from tally import report


def test_a_markdown_table_has_its_rule():
    assert report.markdown(("what", "value"), [("errors", "1")]).splitlines() == [
        "| what | value |",
        "| --- | ---: |",
        "| errors | 1 |",
    ]


def test_a_bar_in_a_cell_does_not_end_it():
    table = report.markdown(("path", "requests"), [("/search?q=a|b", "1")])
    assert table.splitlines()[-1] == r"| /search?q=a\|b | 1 |"
