"""Lines for terminals: nothing is cut, nothing is too wide."""

from hypothesis import given
from hypothesis import strategies as st

from mimir.cli.layout import columns_of, table, wrap

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zs", "Zl", "Zp", "Mn"))
)


@given(st.lists(WORDS.filter(lambda w: not any(map(str.isspace, w)))), st.integers(20, 120))
def test_wrapped_text_loses_no_character_and_fits(words: list[str], width: int):
    lines = wrap(" ".join(words), width, first="title: ", rest="  ")
    assert all(columns_of(line) <= width for line in lines)
    kept = "".join(lines).replace("title:", "", 1) if lines else ""
    assert "".join(kept.split()) == "".join("".join(words).split())


def test_words_that_fit_stay_whole():
    lines = wrap("a word of fifteen letters: characteristics", 30)
    assert lines == ["a word of fifteen letters:", "characteristics"]


def test_last_cell_wraps_next_to_or_below_the_others():
    rows = [("id", "n", "title"), ("run-1", "12", "A title of a few words that is long")]
    assert table(rows, 36, right=(1,)) == [
        "id      n  title",
        "run-1  12  A title of a few words",
        "           that is long",
    ]
    assert table(rows, 30, right=(1,))[2:] == [
        "run-1  12",
        "    A title of a few words",
        "    that is long",
    ]
