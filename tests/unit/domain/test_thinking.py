import pytest

from mimir.domain.thinking import blank_thinking, without_thinking


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</think>\nb", "\nb"),
        ("\n<THINKING>\na\n</thinking>b", "b"),
        ("[THINK]a[/THINK]b", "b"),
        ("<think>a</think><think>b</think>c", "c"),
        ("<seed:think>a</seed:think>b", "b"),
        ('a {"x"}.\n</think>\n\n{"y": 1}', '\n\n{"y": 1}'),
        ('a.</think>{"y": 1}', '{"y": 1}'),
        ("<think>cut off", ""),
        ("The tag </think> ends it.", "The tag </think> ends it."),
        ("Write `</think>`\nto end.", "Write `</think>`\nto end."),
        ("See:\n<think>\na\n</think>\nb", "See:\n<think>\na\n</think>\nb"),
        ("plain", "plain"),
    ],
)
def test_thinking_is_removed_and_a_quoted_tag_stays(text: str, rest: str):
    assert without_thinking(text) == rest


def test_the_lines_of_a_document_keep_their_numbers():
    assert blank_thinking("a\nb\n</think>\n# Plan") == "\n\n\n# Plan"
    assert blank_thinking("Say </think>\n# Plan") == "Say </think>\n# Plan"
