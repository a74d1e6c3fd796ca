"""An attempt settles each conflict that the engine left in its workspace."""

import pytest

from mimir.attempts.conflicts import ConflictedFile, find_unsettled
from mimir.domain.message import Message, ToolCall

OURS, THEIRS = "# Changes\n- head\n", "# Changes\n- attempt\n"
WRITTEN = "# Changes\n<<<<<<< head\n- head\n=======\n- attempt\n>>>>>>> attempt\n"
TOPIC = "Git writes:\n<<<<<<< head\na\n=======\nb\n>>>>>>> attempt\n"


def text(delivered: str | None, *, ours: str = OURS, written: str = WRITTEN) -> ConflictedFile:
    return ConflictedFile(
        path="doc.md",
        ours=ours.encode(),
        theirs=ours.replace("head\n", "attempt\n", 1).encode(),
        written=written.encode(),
        delivered=None if delivered is None else delivered.encode(),
        is_unchanged=delivered == written,
    )


def kept(path: str = "logo.png", *, is_renamed: bool = False) -> ConflictedFile:
    side = None if is_renamed else b"\0"
    return ConflictedFile(
        path=path, ours=side, theirs=side, written=b"\0", delivered=b"\0", is_unchanged=True
    )


def ran(arguments: str, *, tree: str = "t") -> list[Message]:
    call = ToolCall(id="1", name="run", arguments=arguments)
    return [
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text="done", tree=tree),
    ]


@pytest.mark.parametrize(
    "delivered",
    [
        WRITTEN,
        WRITTEN.replace("<<<<<<< head\n", ""),
        WRITTEN.replace(">>>>>>> attempt\n", ""),
        "# Changes\n- head\n=======\n- attempt\n",
        "# Changes\n- head\n=======\n- both\n",
        WRITTEN.replace("\n", "\r\n"),
        WRITTEN + "- more\n",
    ],
)
def test_a_text_with_a_marker_of_the_engine_is_not_settled_even_if_a_call_names_it(delivered: str):
    assert find_unsettled([text(delivered)], ran('{"command": "touch doc.md"}')) == ("doc.md",)


@pytest.mark.parametrize(
    "delivered",
    [
        "# Changes\n- head\n- attempt\n",
        None,
        "",
        "# Changes\n- head\n- attempt\n\nTitle!!\n=======\n",
        "# Changes\n- both\n<<<<<<< HEAD\nmine\n=======\nyours\n>>>>>>> main\n",
    ],
)
def test_a_text_without_the_markers_of_the_engine_is_settled(delivered: str | None):
    assert find_unsettled([text(delivered)], []) == ()


def test_lines_like_markers_that_a_side_has_are_no_conflict():
    ours, written = TOPIC + OURS, TOPIC + WRITTEN

    assert not find_unsettled([text(TOPIC + "- both\n", ours=ours, written=written)], [])
    assert find_unsettled([text(written, ours=ours, written=written)], [])


@pytest.mark.parametrize("command", ["touch logo.png", "cp a.png ./logo.png", "'logo.png'"])
def test_a_file_without_lines_is_settled_by_a_call_that_names_it(command: str):
    assert find_unsettled([kept()], ran(f'{{"command": "{command}"}}')) == ()


@pytest.mark.parametrize(
    "command", ["true", "touch img/logo.png", "touch logo.png.bak old-logo.png"]
)
def test_a_call_that_names_another_file_settles_nothing(command: str):
    assert find_unsettled([kept()], ran(f'{{"command": "{command}"}}')) == ("logo.png",)


def test_reading_a_file_settles_nothing():
    assert find_unsettled([kept()], ran('{"path": "logo.png"}', tree="")) == ("logo.png",)


def test_a_name_that_the_engine_invented_must_go():
    file = kept("data~head", is_renamed=True)

    assert find_unsettled([file], ran('{"command": "touch data~head"}')) == ("data~head",)
