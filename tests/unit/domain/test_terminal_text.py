"""Visible text of an output full of terminal codes."""

import pytest

from mimir.domain.terminal_text import visible_text


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1m\x1b[32m715 passed\x1b[0m in 3s\n", "715 passed in 3s\n"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 and \x1b]0;title\x07text", "link and text"),
        ("\x1b]0;never ended\n715 passed\n", "\n715 passed\n"),
        ("\x1b(Bcharset\x1b=", "charset"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("long line\rshort\x1b[Kx\r\n", "shortx\n"),
        ("fetching\x1b[2K\rdone\r\n", "done\n"),
        ("spin |\b/\b-\n", "spin -\n"),
        ("bell\x07 nul\x00 del\x7f\n", "bell nul del\n"),
        ("\x1b[38;5;", "38;5;"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
    ],
)
def test_visible_text_has_no_control_codes_or_overwritten_text(printed: str, seen: str):
    assert visible_text(printed) == seen


def test_text_without_codes_is_the_same_object():
    text = "é 715 passed\n" * 10
    assert visible_text(text) is text


def test_output_of_nothing_but_codes_takes_linear_time():
    assert visible_text("\x1b]" * 100_000 + "\x1b[" * 100_000 + "a\r" * 100_000) == "a"
