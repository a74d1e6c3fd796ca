import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.cli.console import Console, clean, clean_line

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
"""Every code point, halves of characters included."""
SEQUENCES = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b[31m",
    "\x1bP1$r\x1b\\",
    "\x9b31m",
    "\x1b\x1b[31m[31m",
    *"\r\x08\x7f\x00\u202e\u2066\ufeff\U000e0041\ud800",
]
HOSTILE = st.lists(st.one_of(st.sampled_from(SEQUENCES), st.text(max_size=5))).map("".join)
OBEYED = {"Cc", "Cs", "Zl", "Zp"}
TURNING = frozenset(
    chr(code)
    for first, last in ((0x202A, 0x202E), (0x2060, 0x206F), (0x200E, 0x200F), (0xE0000, 0xE007F))
    for code in range(first, last + 1)
) | frozenset("\u061c\u200b\ufeff\ufff9\ufffa\ufffb")


def obeyed_in(text: str) -> set[str]:
    """Return the characters that a terminal would obey, or that hide or turn text around."""
    kept = set(text) - {"\n", "\t"}
    return {c for c in kept if unicodedata.category(c) in OBEYED or c in TURNING}


@given(st.one_of(ANY_TEXT, HOSTILE))
def test_no_text_contains_terminal_codes(text: str):
    assert obeyed_in(clean(text)) == set()
    assert obeyed_in(clean_line(text)) == set()
    assert "\x1b" not in clean(text)


@given(st.one_of(ANY_TEXT, HOSTILE))
def test_line_is_one_line_within_its_limit(text: str):
    line = clean_line(text, 40)
    assert len(line.splitlines()) <= 1
    assert len(line) <= 40


@given(st.one_of(ANY_TEXT, HOSTILE))
def test_clean_is_idempotent(text: str):
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_harmless_text_is_not_touched(text: str):
    assert clean(f"{text}\n\t{text}") == f"{text}\n\t{text}"


def test_control_codes_are_shown_escaped():
    assert clean("a\x1b]0;x\x07b") == "a\\x1b]0;x\\x07b"
    assert clean("user\u202etxt.exe") == "user\\u202etxt.exe"
    assert clean("\U000e0041") == "\\U000e0041"


def test_colours_of_test_runners_are_left_out():
    assert clean("\x1b[1;31mFAILED\x1b[0m test") == "FAILED test"


def test_hidden_control_sequence_is_shown_escaped():
    assert clean("\x1b\x1b[31m[2J") == "\\x1b[2J"


def test_lines_of_windows_are_lines():
    assert clean("a\r\nb") == "a\nb"
    assert clean("progress 1\rprogress 2") == "progress 1\\x0dprogress 2"


@pytest.fixture
def streams() -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Console(out, err), out, err


def test_results_and_notes_go_to_their_own_streams(
    streams: tuple[Console, io.StringIO, io.StringIO],
):
    console, out, err = streams
    console.say("a result\nof two lines")
    console.note("a note\nof two lines")
    assert out.getvalue() == "a result\nof two lines\n"
    assert err.getvalue() == "a note of two lines\n"


@given(HOSTILE)
def test_json_is_one_harmless_line_that_reads_back(text: str):
    out = io.StringIO()
    Console(out, io.StringIO()).json({"text": text})
    said = out.getvalue()
    assert obeyed_in(said) == set()
    assert said.count("\n") == 1
    assert json.loads(said) == {"text": text}


def test_stream_with_a_small_character_set_shows_replacements(
    monkeypatch: pytest.MonkeyPatch,
):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    console = Console.of_process()
    console.say("naïve ✔")
    assert raw.getvalue() == b"na?ve ?\n"
    assert console.glyphs.passed == "+"


def test_console_without_a_stream_discards_output(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.stdout", None)
    console = Console.of_process()
    console.say("into the void")
    assert not console.is_terminal
    console.out.close()
