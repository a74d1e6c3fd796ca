import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.agents.citations import MAX_CITATIONS, Citation, find_unsupported, parse_citations
from mimir.agents.tool_log import ToolLogEntry


def _call(number: int, text: str, arguments: str = "{}") -> ToolLogEntry:
    return ToolLogEntry(number=number, tool="run", arguments=arguments, text=text, tree="")


LEDGER = {
    1: _call(1, "[engine] exit code 0\n\n3 passed in\n   0.02s"),
    7: _call(7, 'say "hi"'),
    8: _call(8, "exit code 0\n\nall is green\n", '{"command": "echo all is green"}'),
}


@pytest.mark.parametrize(
    ("answer", "number", "quote"),
    [
        ('All green: [call:7] "3 passed".', 7, "3 passed"),
        ("[call:12] “3 passed”", 12, "3 passed"),
        ("[call:1] `3 passed`", 1, "3 passed"),
        ('[call:1]: "3\n  passed"', 1, "3 passed"),
        ('[call:1]\n"3 passed"', 1, "3 passed"),
        ("see [call:3] for it", 3, ""),
    ],
)
def test_citation_is_read(answer: str, number: int, quote: str):
    assert parse_citations(answer) == (Citation(number=number, quote=quote),)


def test_text_without_citations_has_none():
    assert parse_citations('3 passed, "call 7", [call:x], [qc:1] "words"') == ()


def test_equal_citations_are_one():
    assert len(parse_citations('[call:1] "a" and [call:1] "a" and [call:2] "a"')) == 2


def test_citation_of_the_words_of_a_call_is_supported():
    assert (
        find_unsupported('[call:1] "3 passed in 0.02s", [call:7] `say "hi"`, [call:7]', LEDGER)
        == ()
    )


def test_citation_of_other_words_is_unsupported():
    assert find_unsupported('[call:1] "4 passed" and [call:9] "3 passed"', LEDGER) == (
        '[call:1] "4 passed": call 1 did not say this',
        '[call:9] "3 passed": there was no call 9',
    )


def test_citation_of_another_call_is_unsupported():
    assert find_unsupported('[call:7] "3 passed"', LEDGER) == (
        '[call:7] "3 passed": call 7 did not say this',
    )


def test_words_that_were_given_to_a_call_are_unsupported():
    assert find_unsupported('[call:8] "is green", [call:8] "exit code 0"', LEDGER) == (
        '[call:8] "is green": these words were given to call 8',
    )


def test_long_quotes_are_named_shortly():
    (claim,) = find_unsupported(f'[call:1] "{"x" * 1999}"', LEDGER)
    assert len(claim) < 300


def test_flood_of_citations_is_bounded():
    answer = "".join(f'[call:{n}] "x"' for n in range(1000, 1000 + MAX_CITATIONS + 5))
    claims = find_unsupported(answer, LEDGER)
    assert len(claims) == MAX_CITATIONS + 1
    assert claims[-1] == "5 further citations were not looked up"


@given(st.text(alphabet='[]cal:0123456789"“”` \n-x', max_size=300))
def test_every_text_can_be_read(answer: str):
    find_unsupported(answer, LEDGER)
