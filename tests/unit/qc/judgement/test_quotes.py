import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.agents.citations import argument_text
from mimir.domain.terminal_text import visible_text
from mimir.domain.verdict import CriterionOpinion
from mimir.qc.judgement.quotes import (
    explain_missing_quote,
    find_unsupported_passes,
    name_source,
)

SOURCES = {
    "check:unit": "..........\n10 passed in 0.12s\n",
    "file:src/a.py": "def refill(self) -> None:\n    self.tokens = self.rate * seconds\n",
    "answer": "The limit is documented in docs/limits.md.",
}


@pytest.mark.parametrize(
    ("quote", "source"),
    [
        ("10 passed in 0.12s", "check:unit"),
        ("10  passed\n\tin 0.12s", "check:unit"),
        ("None: self.tokens = self.rate", "file:src/a.py"),
        ("  def refill(self)  ", " file:src/a.py "),
        ("10passed in 0.12s".replace("10p", "10 p"), "check:unit"),
        (".......... 10 passed", "check:unit"),
        ('"10 passed in 0.12s"', "check:unit"),
        ("`10 passed in 0.12s`", "check:unit"),
    ],
)
def test_quote_in_its_source_is_found(quote: str, source: str):
    assert explain_missing_quote(quote, source, SOURCES) == ""


@pytest.mark.parametrize(
    ("quote", "source", "says"),
    [
        ("", "check:unit", "no quote"),
        ("  \n ", "check:unit", "no quote"),
        ("10 passed", "check:unit", "fewer than 12"),
        ('"  passed in 0."', "check:unit", "is not in"),
        ("1 0 p a s s e d i n", "check:unit", "fewer than 12"),
        ("11 passed in 0.12s", "check:unit", "is not in"),
        ("10 PASSED in 0.12s", "check:unit", "is not in"),
        ("10passed in 0.12s", "check:unit", "is not in"),
        ("10 passed in 0.12s", "file:src/a.py", "is not in"),
        ("10 passed in 0.12s", "check:other", "no source"),
        ("10 passed in 0.12s", "CHECK:unit", "no source"),
        ("10 passed in 0.12s", "", "no source"),
        ("10 passed in 0.12s", "call:1", "no source"),
        ("def refill(self) ... seconds", "file:src/a.py", "is not in"),
        ("10 passed in 0.12s The limit is", "check:unit", "is not in"),
    ],
)
def test_quote_missing_from_its_source_is_named(quote: str, source: str, says: str):
    assert says in explain_missing_quote(quote, source, SOURCES)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(
            (form, "file:src/a.py")
            for form in (
                "file: src/a.py",
                "[file:src/a.py]",
                "`file:./src/a.py`",
                "file:/workspace/src/a.py",
                "file:src/a.py:12",
                "file:src/a.py:12-20",
                "file:src/a.py#L3-L9",
                "file:src/a.py, lines 3-5",
                "file:src/a.py (line 3)",
                "file:`src/a.py`",
            )
        ),
        *((form, "qc:3") for form in ("[qc:3]", "qc 3", "qc: 3", "qc#3")),
        ("check unit", "check:unit"),
        (" answer ", "answer"),
        ("file:checks/line 3/a.py", "file:checks/line 3/a.py"),
        ("filename.py", "filename.py"),
    ],
)
def test_source_is_named_without_its_marks(written: str, name: str):
    assert name_source(written) == name


@given(st.text(min_size=1, max_size=200), st.data())
def test_every_long_enough_piece_of_a_text_is_found_in_it(text: str, data: st.DataObject):
    words = visible_text(text).split()
    start = data.draw(st.integers(0, len(words)))
    piece = " ".join(words[start : data.draw(st.integers(start, len(words)))])

    found = explain_missing_quote(piece, "s", {"s": text}) == ""

    assert found == (len("".join(piece.split())) >= 12)


@given(st.text(alphabet="ab \n", max_size=60), st.text(alphabet="ab \n", max_size=120))
def test_quote_is_found_only_in_its_source(quote: str, text: str):
    if explain_missing_quote(quote, "s", {"s": text}) == "":
        assert "".join(quote.split()) in "".join(text.split())


def test_only_passed_criteria_need_a_quote():
    opinions = [
        (
            "criterion c1",
            CriterionOpinion(id="c1", state="passed", quote="nowhere to be found", source="answer"),
        ),
        ("criterion c2", CriterionOpinion(id="c2", state="failed")),
        ("criterion c3", CriterionOpinion(id="c3", state="unverified", quote="x")),
        (
            "criterion c4",
            CriterionOpinion(id="c4", state="passed", quote="documented in docs", source="answer"),
        ),
    ]

    assert find_unsupported_passes(opinions, SOURCES) == [
        "criterion c1: the quote is not in 'answer'"
    ]


@pytest.mark.parametrize(
    ("arguments", "quote", "counts"),
    [
        ('{"command": "echo \\"42 passed in 0.31s\\""}', "42 passed in 0.31s", False),
        ('{"command": "printf \'%s passed in %s\' 42 0.31s"}', "42 passed in 0.31s", False),
        ('{"command": "echo 42 \'passed in\' 0.31s"}', "42  passed in 0.31s", False),
        ("echo ============ 1", "============", False),
        ('{"command": "python -m pytest -q tests/test_calc.py"}', "42 passed in 0.31s", True),
        ('{"command": "pytest tests/test_calc.py"}', "tests/test_calc.py .. 42 passed", True),
    ],
)
def test_text_given_to_the_command_is_no_evidence(arguments: str, quote: str, counts: bool):
    text = "tests/test_calc.py .. 42 passed in 0.31s ============"
    commands = {"qc:1": argument_text(arguments)}
    assert (explain_missing_quote(quote, "qc:1", {"qc:1": text}) == "") or quote not in text
    assert (explain_missing_quote(quote, "qc:1", {"qc:1": text}, commands) == "") is counts
