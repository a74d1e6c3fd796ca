"""Answers of the tools that read, list, search and change files."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mimir.domain.message import ToolResult
from mimir.tools.builtin.files import FileTools
from mimir.tools.secrets import Redactor
from mimir.workspace.paths import DirectoryTree
from tests.support.fake_tools import CONTEXT, wish
from tests.support.projects import write_files

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n",
    "docs/guide.md": "# Guide\nadd, then sub\n",
    "empty.txt": "",
    "windows.txt": "one\r\ntwo\r\n",
    "no-end.txt": "one\ntwo",
    ".env": "API_KEY=abcd1234efgh\nMODE=fast\n",
}
HIDDEN = ("chains", ".mimir", "generated-agents", "preambles")
FORBIDDEN = ("mimir.toml", *(f"{name}/**" for name in HIDDEN))


class Room:
    """A workspace with its tools."""

    def __init__(self, path: Path, files: Mapping[str, str] = FILES, **more: object) -> None:
        self.path = path
        write_files(path, files)
        self.tools = FileTools(DirectoryTree(path), redact=Redactor(["s3cret-value"]), **more)  # type: ignore[arg-type]

    async def call(self, name: str, **arguments: object) -> ToolResult:
        return await self.tools.call(wish(name, arguments), CONTEXT)

    async def text(self, name: str, **arguments: object) -> str:
        result = await self.call(name, **arguments)
        assert not result.is_error, result.text
        return result.text

    async def refused(self, name: str, **arguments: object) -> str:
        result = await self.call(name, **arguments)
        assert result.is_error, result.text
        assert result.text.startswith("Denied: " if result.denied else "Error: ")
        return result.text


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path / "ws")


async def test_a_file_is_read_with_its_line_numbers_above(room: Room):
    assert await room.text("read_file", path="calc.py") == (
        "calc.py, lines 1 to 6 of 6\n" + FILES["calc.py"].removesuffix("\n")
    )


async def test_part_of_a_file_names_the_next_offset(room: Room):
    assert await room.text("read_file", path="calc.py", offset=2, limit=2) == (
        "calc.py, lines 2 to 3 of 6\n    return a - b\n\n[not the end: read on with offset=4]"
    )
    assert "[not the end" not in await room.text("read_file", path="calc.py", offset=4)


async def test_a_last_line_without_an_end_is_a_line(room: Room):
    assert (
        await room.text("read_file", path="no-end.txt") == "no-end.txt, lines 1 to 2 of 2\none\ntwo"
    )
    assert await room.text("read_file", path="no-end.txt", limit=1) == (
        "no-end.txt, lines 1 to 1 of 2\none\n[not the end: read on with offset=2]"
    )


async def test_a_long_file_is_read_in_parts_that_lose_nothing(tmp_path: Path):
    lines = [f"line {i} {'x' * (i % 50)}" for i in range(1, 400)]
    room = Room(tmp_path / "ws", {"long.txt": "\n".join(lines) + "\n"}, max_chars=1_000)
    seen: list[str] = []
    offset = 1
    while offset:
        header, *body = (await room.text("read_file", path="long.txt", offset=offset)).split("\n")
        assert header.startswith(f"long.txt, lines {offset} to ")
        more = body.pop() if body[-1].startswith("[not the end") else ""
        seen += body
        offset = int(more.removesuffix("]").rsplit("=", 1)[1]) if more else 0
    assert seen == lines


async def test_a_line_longer_than_a_page_is_cut_with_a_mark(tmp_path: Path):
    room = Room(tmp_path / "ws", {"wide.txt": "a" * 150 + "\nnext\n"}, max_chars=100)
    assert await room.text("read_file", path="wide.txt") == (
        f"wide.txt, lines 1 to 1 of 2\n{'a' * 100}\n"
        "[line 1 continues for 51 more characters that cannot be shown; use grep]\n"
        "[not the end: read on with offset=2]"
    )


async def test_empty_file_is_reported_as_empty(room: Room):
    assert await room.text("read_file", path="empty.txt") == "empty.txt is empty."


async def test_file_offset_past_the_end_is_refused(room: Room):
    assert await room.refused("read_file", path="calc.py", offset=7) == (
        "Error: 'calc.py' has 6 lines; offset 7 is past its end. Give a smaller offset."
    )


async def test_binary_file_is_not_shown_or_edited(room: Room):
    (room.path / "a.bin").write_bytes(b"\x89PNG\0\0")
    (room.path / "latin.txt").write_bytes("naïve".encode("latin-1"))
    assert await room.refused("read_file", path="a.bin") == (
        "Error: 'a.bin' is a binary file of 6 bytes; it cannot be shown as text. Use a command to look into it."
    )
    assert await room.refused("edit_file", path="latin.txt", old="a", new="b") == (
        "Error: 'latin.txt' is not UTF-8 text: byte 0xef at offset 2. Use a command that knows its encoding."
    )


async def test_a_file_that_is_too_large_is_not_read(room: Room):
    with (room.path / "huge.log").open("wb") as file:
        file.truncate(11_000_000)
    assert await room.refused("read_file", path="huge.log") == (
        "Error: 'huge.log' has 11,000,000 bytes; files over 10,000,000 are not read. "
        "Use a command that shows a part of it, such as head, tail or sed."
    )


async def test_files_are_listed_by_glob(room: Room):
    assert await room.text("list_files") == (
        "6 files\n.env\ncalc.py\ndocs/guide.md\nempty.txt\nno-end.txt\nwindows.txt"
    )
    assert await room.text("list_files", glob="docs") == "1 file\ndocs/guide.md"
    assert await room.text("list_files", glob="*.md") == (
        "No file matches '*.md'. '*' does not cross '/': use '**/' for any depth."
    )
    assert await room.text("list_files", glob="**/*.rst") == "No file matches '**/*.rst'."


async def test_file_name_with_control_characters_is_shown_escaped(room: Room):
    (room.path / "a\nb.txt").write_text("x")
    (room.path / " c\x1b[1m").write_text("x")
    listing = await room.text("list_files")
    assert '"a\\nb.txt"' in listing
    assert '" c\\u001b[1m"' in listing
    assert listing.startswith("8 files\n")
    assert listing.count("\n") == 8


async def test_a_name_that_is_no_utf8_is_listed(tmp_path: Path):
    room = Room(tmp_path / "ws", {})
    (room.path).mkdir(exist_ok=True)
    (room.path / "bad\udcff.txt").write_text("needle")
    assert await room.text("list_files") == '1 file\n"bad\\udcff.txt"'
    assert (
        await room.text("grep", pattern="needle") == '1 matching line\n"bad\\udcff.txt":1: needle'
    )


async def test_a_long_listing_ends_with_a_mark(tmp_path: Path):
    room = Room(tmp_path / "ws", {f"f{i:02}": "" for i in range(30)}, max_chars=40)
    listing = await room.text("list_files")
    assert listing.splitlines()[0] == "30 files"
    assert listing.splitlines()[-1] == "[20 files not shown: give a narrower glob]"
    assert len(listing.splitlines()) == 12


async def test_lines_are_found_with_their_places(room: Room):
    assert await room.text("grep", pattern="add") == (
        "2 matching lines\ncalc.py:1: def add(a, b):\ndocs/guide.md:2: add, then sub"
    )
    assert await room.text("grep", pattern=r"^def \w+\(", glob="**/*.py") == (
        "2 matching lines\ncalc.py:1: def add(a, b):\ncalc.py:5: def sub(a, b):"
    )
    assert await room.text("grep", pattern="two$") == (
        "2 matching lines\nno-end.txt:2: two\nwindows.txt:2: two"
    )
    assert await room.text("grep", pattern="nowhere") == "0 matching lines"


async def test_skipped_files_of_a_search_are_counted(room: Room):
    (room.path / "a.bin").write_bytes(b"add\0")
    (room.path / "latin.txt").write_bytes("añadd".encode("latin-1"))
    (room.path / "link").symlink_to("calc.py")
    assert (await room.text("grep", pattern="add")).endswith(
        "\n[not searched: 2 files (no UTF-8 text, or too large)]"
    )


async def test_search_with_too_many_hits_is_marked(tmp_path: Path):
    room = Room(tmp_path / "ws", {"a.txt": "hit\n" * 500 + "h" * 400})
    said = await room.text("grep", pattern="h")
    assert said.startswith(
        "the first 200 matching lines; there are more: narrow the pattern or the glob\na.txt:1: hit\n"
    )
    small = Room(tmp_path / "ws", {}, max_chars=50)
    assert (await small.text("grep", pattern="h")).count("a.txt:") == 3
    assert (await small.text("grep", pattern="hhh")) == (
        "the first 0 matching lines; there are more: narrow the pattern or the glob"
    )


async def test_file_is_written_with_its_folders(room: Room):
    assert await room.text("write_file", path="src/./new//a.py", content="x = 1\ny = 2\n") == (
        "Wrote src/new/a.py: 2 lines, 12 bytes (new file)."
    )
    assert (room.path / "src/new/a.py").read_bytes() == b"x = 1\ny = 2\n"
    assert await room.text("write_file", path="src/new/a.py", content="é") == (
        "Wrote src/new/a.py: 1 line, 2 bytes (replaced the file)."
    )


async def test_an_edit_replaces_the_one_place(room: Room):
    assert (
        await room.text(
            "edit_file",
            path="calc.py",
            old="def add(a, b):\n    return a - b",
            new="def add(a, b):\n    return a + b",
        )
        == "Edited calc.py at line 1: 2 lines became 2 lines."
    )
    assert (room.path / "calc.py").read_text() == FILES["calc.py"].replace("a - b", "a + b", 1)
    assert await room.text("edit_file", path="windows.txt", old="\r\ntwo", new="") == (
        "Edited windows.txt at line 1: 2 lines became 0 lines."
    )
    assert (room.path / "windows.txt").read_bytes() == b"one\r\n"


async def test_a_file_is_deleted(room: Room):
    assert await room.text("delete_file", path="docs/guide.md") == "Deleted docs/guide.md."
    assert not (room.path / "docs/guide.md").exists()


EDITS = {
    "nowhere": (
        "calc.py", "return a + b", "x",
        "Error: old was not found in 'calc.py'. Nothing was changed. Nearest to its first line is line 2: "
        "'    return a - b'. Copy the lines exactly as read_file shows them, white space too.",
    ),
    "other white space": (
        "calc.py", "  def add(a, b):", "x",
        "Error: old was not found in 'calc.py'. Nothing was changed. Nearest to its first line is line 1: "
        "'def add(a, b):'. Copy the lines exactly as read_file shows them, white space too.",
    ),
    "a first line that fits": (
        "calc.py", "def add(a, b):\n    return b", "x",
        "Error: old was not found in 'calc.py'. Nothing was changed. Line 1 is equal to its first line, but what "
        "follows differs. Copy the lines exactly as read_file shows them, white space too.",
    ),
    "nothing like it": (
        "calc.py", "zzzzzzzzzzzzzzzzz", "x",
        "Error: old was not found in 'calc.py'. Nothing was changed. Read the file and copy the lines exactly.",
    ),
    "other line ends": (
        "windows.txt", "one\ntwo\n", "x",
        "Error: old was not found in 'windows.txt'. Nothing was changed. The lines of this file end with \\r\\n: "
        "write them so in old and new.",
    ),
    "more than once": (
        "calc.py", "    return a - b\n", "x",
        "Error: old occurs 2 times in 'calc.py' (lines 2, 6); it must occur once. Nothing was changed. "
        "Add lines before or after it to old and new.",
    ),
    "empty": (
        "calc.py", "", "x",
        "Error: old is empty. Give the text to replace, or use write_file for a new file.",
    ),
    "no change": (
        "calc.py", "a", "a",
        "Error: old and new are the same, so nothing would change. Give the new text.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new", "said"), EDITS.values(), ids=EDITS)
async def test_an_edit_that_is_not_exact_changes_nothing_and_helps(
    room: Room, path: str, old: str, new: str, said: str
):
    assert await room.refused("edit_file", path=path, old=old, new=new) == said
    assert (room.path / path).read_bytes() == FILES[path].encode()


async def test_overlapping_places_are_two(room: Room):
    (room.path / "a.txt").write_text("aaa")
    assert "occurs 2 times" in await room.refused("edit_file", path="a.txt", old="aa", new="b")


@pytest.mark.timeout(60)
async def test_large_uniform_file_is_edited_in_bounded_time(room: Room):
    """Counting every place, or comparing every line, takes minutes here."""
    (room.path / "a.txt").write_text("a" * 1_000_000)
    refused = await room.refused("edit_file", path="a.txt", old="a" * 50_000, new="b")
    assert "old occurs at least 100 times in 'a.txt' (line 1); it must occur once." in refused
    (room.path / "b.txt").write_text("\n".join("ab" * 90 + f"{i:06}" for i in range(30_000)))
    assert "Nothing was changed" in await room.refused(
        "edit_file", path="b.txt", old="ba" * 95, new="b"
    )


async def test_secrets_are_not_shown(room: Room):
    (room.path / "conf.py").write_text('KEY = "s3cret-value"\nn = 1\n')
    assert await room.text("read_file", path=".env") == (
        ".env, lines 1 to 2 of 2\nAPI_KEY=[redacted:secret]\nMODE=fast"
    )
    assert await room.text("grep", pattern="KEY") == (
        '2 matching lines\n.env:1: API_KEY=[redacted:secret]\nconf.py:1: KEY = "[redacted:secret]"'
    )
    refused = await room.refused("edit_file", path="conf.py", old='KEY = "s3cret"', new="x")
    assert "s3cret-value" not in refused
    assert "[redacted:secret]" in refused


async def test_pattern_cannot_reveal_a_secret(room: Room):
    (room.path / "conf.py").write_text('KEY = "s3cret-value"\n')
    assert await room.text("grep", pattern="s3c.*") == "0 matching lines"
    assert await room.text("grep", pattern="s3cret") == "0 matching lines"


async def test_a_line_of_a_private_key_is_not_shown(room: Room):
    key = [
        "-----BEGIN PRIVATE KEY-----",
        *["QUJDREVGR0hJSktMTU5P" * 3] * 3,
        "-----END PRIVATE KEY-----",
    ]
    (room.path / "key.pem").write_text("\n".join(["# mine", *key, "# end"]))
    assert "QUJD" not in await room.text("read_file", path="key.pem", offset=3, limit=2)
    assert await room.text("grep", pattern="QUJD") == "0 matching lines"
    assert (await room.text("read_file", path="key.pem", offset=7)).endswith("\n# end")


async def test_the_mark_of_a_secret_is_never_written_over_it(room: Room):
    content = "API_KEY=[redacted:secret]\nMODE=slow\n"
    said = (
        "Error: '.env' holds a secret that you see as '[redacted:…]'; writing that mark would destroy it. "
        "Nothing was changed. Use edit_file on other lines and leave that one alone."
    )
    assert await room.refused("write_file", path=".env", content=content) == said
    assert (
        await room.refused("edit_file", path=".env", old="API_KEY=[redacted:secret]", new="")
        == said
    )
    assert (room.path / ".env").read_text() == FILES[".env"]
    await room.text("edit_file", path=".env", old="MODE=fast", new="MODE=slow")
    assert (room.path / ".env").read_text() == "API_KEY=abcd1234efgh\nMODE=slow\n"
    await room.text("write_file", path="redact.py", content='MARK = "[redacted:x]"\n')
