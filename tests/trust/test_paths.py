"""Every file tool against names, links, special files and a process that swaps them: nothing outside is read, written or waited for."""

import hashlib
import itertools
import os
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mimir.errors import MimirError
from mimir.tools.builtin.files import FileTools
from mimir.tools.scope import PathScope
from mimir.workspace.paths import DirectoryTree
from tests.support import link_swapper
from tests.support.fake_tools import CONTEXT, wish
from tests.support.projects import write_files
from tests.support.trust_sizes import Cases, sized

SECRET = "the-person's-own-words-9137"
HIDDEN = (".mimir", "chains", "generated-agents", "preambles")
FORBIDDEN = ("mimir.toml", *(f"{name}/**" for name in HIDDEN))
LONG = "n" * 255


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files around a workspace: a neighbour with a similar name, a secret, a device, a store."""
    write_files(
        tmp_path,
        {
            "ws-evil/secret": SECRET,
            "ws-evil/sub/a.txt": SECRET,
            "secret": SECRET,
            "outside/secret": SECRET,
            "outside/a.txt": SECRET,
            "outside/sub/a.txt": SECRET,
        },
    )
    return tmp_path


@pytest.fixture
def room(outside: Path) -> Path:
    made = outside / "ws"
    write_files(made, {"a.txt": "inside\n", "sub/a.txt": "inside\n", "chains/plan.md": SECRET})
    return made


def tools_of(room: Path) -> FileTools:
    return FileTools(DirectoryTree(room), PathScope(forbidden=FORBIDDEN, hidden=HIDDEN))


def fingerprint(outside: Path) -> dict[str, str]:
    """Return all files around the workspace, by content and kind."""
    found: dict[str, str] = {}
    for path in sorted(outside.rglob("*")):
        name = str(path.relative_to(outside))
        if name == "ws" or name.startswith("ws/"):
            continue
        status = path.lstat()
        found[name] = f"{status.st_mode:o} {status.st_uid} {status.st_nlink}"
        if path.is_file() and not path.is_symlink():
            found[name] += hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def calls_on(path: str) -> Sequence[tuple[str, Mapping[str, object]]]:
    """Return a call of each file tool that names this path."""
    return (
        ("read_file", {"path": path}),
        ("read_file", {"path": path, "offset": 1, "limit": 5}),
        ("write_file", {"path": path, "content": "planted"}),
        ("edit_file", {"path": path, "old": "i", "new": "planted"}),
        ("list_files", {"glob": path}),
        ("delete_file", {"path": path}),
    )


async def call_tool(tools: FileTools, tool: str, arguments: Mapping[str, object]) -> str:
    """Return the text of a call; only an error of the engine may be raised."""
    try:
        return (await tools.call(wish(tool, arguments), CONTEXT)).text
    except MimirError as error:
        return str(error)


async def try_all(
    paths: Sequence[str], room: Path, outside: Path, cases: Cases, every: int = 200
) -> None:
    """Call every tool with every path; the outside files are compared again and again."""
    tools, before = tools_of(room), fingerprint(outside)
    for number, path in enumerate(paths, start=1):
        with cases.case(repr(path)):
            for tool, arguments in calls_on(path):
                said = await call_tool(tools, tool, arguments)
                assert SECRET not in said, tool
                assert not any(is_raw(c) for c in said), f"{tool}: {said!r}"
            if number % every == 0 or number == len(paths):
                assert fingerprint(outside) == before


def is_raw(character: str) -> bool:
    """Match text that could deceive a terminal or a reader: control bytes, direction marks."""
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


# Files of the workspace.


def plant(room: Path, outside: Path) -> list[str]:
    """Plant links and special files of every kind; the names to be tried."""
    links = {
        "link": outside / "secret",
        "link-dir": outside / "outside",
        "link-up": Path(".."),
        "link-up-file": Path("../secret"),
        "link-beside": Path("../ws-evil/secret"),
        "link-far": Path("../" * 30 + "etc/passwd"),
        "link-root": Path("/"),
        "link-proc": Path("/proc/self/environ"),
        "link-fd": Path("/proc/self/fd"),
        "link-cwd": Path("/proc/self/cwd"),
        "link-dev": Path("/dev/zero"),
        "link-nothing": outside / "nothing",
        "link-self": Path("link-self"),
        "link-a": Path("link-b"),
        "link-b": Path("link-a"),
        "link-long": Path("x" * 255),
        "link-inside": Path("a.txt"),
        "sub/link": outside / "secret",
    }
    for name, target in links.items():
        (room / name).symlink_to(target)
    (room / "hard").hardlink_to(outside / "secret")
    os.mkfifo(room / "pipe")
    os.mkfifo(room / "sub/pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.path.relpath(room / "sock"))
    names = [*links, "pipe", "sub/pipe", "sock"]
    if os.geteuid() == 0:
        for name, number in (("zero", (1, 5)), ("tty", (5, 0)), ("kmsg", (1, 11))):
            os.mknod(room / name, 0o020666, os.makedev(*number))
            names.append(name)
    below = ("secret", "sub/a.txt", "a.txt", "tmp/mimir-planted", "environ")
    return [*names, *(f"{name}/{more}" for name in names for more in below)]


async def test_no_link_and_no_special_file_leads_out_or_waits(
    cases: Cases, room: Path, outside: Path
):
    paths = plant(room, outside)
    await try_all(paths, room, outside, cases, every=1)


async def test_a_hard_link_to_a_file_outside_is_never_written_through(
    cases: Cases, room: Path, outside: Path
):
    (room / "hard").hardlink_to(outside / "secret")
    tools = tools_of(room)
    for tool, arguments in calls_on("hard"):
        with cases.case(tool):
            await call_tool(tools, tool, arguments)
            assert (outside / "secret").read_text() == SECRET
            (room / "hard").unlink(missing_ok=True)
            (room / "hard").hardlink_to(outside / "secret")


async def test_search_skips_links_out_of_the_workspace(cases: Cases, room: Path, outside: Path):
    plant(room, outside)
    (room / "hard").unlink()
    tools = tools_of(room)
    for glob in (
        "**", "*", "**/*", "link*", "link*/**", "link-dir/*", "link-up/**", "**/secret", "**/a.txt",
        "link-root/etc/passwd", "../**", "/**", "//**", "{..,a}/**", "[.][.]/**", "**/../../**",
    ):  # fmt: skip
        with cases.case(glob):
            for said in (
                await call_tool(tools, "list_files", {"glob": glob}),
                await call_tool(tools, "grep", {"pattern": "words|root:|inside", "glob": glob}),
            ):
                assert SECRET not in said
                assert "root:" not in said
                assert "ws-evil" not in said


# Names.

NAMES = [
    "-rf", "--help", "-", "a\nb", "a\rb", "a\tb", "a\x1b[31mb", "a\x1b]8;;http://x\x07b", "a\x9bb", "\u202egnp.exe",
    "a\u2066b\u2069", "\u200fa", "a\u2028b", "a\u2029b", "\ufeffa", "a\u200bb", "é", "é", "Å", "Å", "A.TXT", "a.txt",
    "A.txt", "ﬁle", "file", "con", "NUL", "aux.txt", "a ", " a", "a.", "...", "....", ". .", "..a", "a..", "*", "?", "[a]",
    "{a,b}", "!a", "#a", "$HOME", "`id`", "$(id)", "a;b", "a|b", "a&b", "a'b", 'a"b', "a\\b", "\\..\\secret", "%2e%2e",
    "a%00b", "a\x00b", "\x00", "~", "~root", "~/x", LONG, LONG + "n", "é" * 127, "é" * 128, "d/" * 60 + "f", "d/" * 600 + "f",
    "\ud800", "a\udcffb", "😀", "مرحبا", "a\u0301\u0301\u0301", "\u00a0", "\u3000", "x" * 100_000, "/" * 5000, "a/" * 40_000,
]  # fmt: skip


async def test_no_name_does_more_than_name_a_file(cases: Cases, room: Path, outside: Path):
    await try_all(NAMES, room, outside, cases, every=1)


async def test_names_that_differ_in_case_or_composition_are_two_files(cases: Cases, room: Path):
    tools = tools_of(room)
    for one, other in (("é.txt", "é.txt"), ("B.txt", "b.txt"), ("ﬁ.txt", "fi.txt"), ("ſ", "s")):
        with cases.case((one, other)):
            for name in (one, other):
                await call_tool(tools, "write_file", {"path": name, "content": f"of {name}"})
            assert (room / one).read_bytes() == f"of {one}".encode()
            assert (room / other).read_bytes() == f"of {other}".encode()


async def test_variants_of_engine_file_names_are_refused(cases: Cases, room: Path, outside: Path):
    tools, before = tools_of(room), fingerprint(outside)
    for name in ENGINE_TWINS:
        with cases.case(name):
            for tool, arguments in calls_on(name):
                said = await call_tool(tools, tool, arguments)
                assert SECRET not in said
                assert "Wrote" not in said
                assert "Deleted" not in said
            assert fingerprint(outside) == before


ENGINE_TWINS = [
    prefix + name + rest
    for name, rest in itertools.product(
        (
            ".git", ".GIT", ".Git", "．git", ".ｇit", ".mimir", ".MIMIR", "．mimir", "chains", "CHAINS", "ｃhains", "chainſ",
            "preambles", "Preambles", "generated-agents", "GENERATED-AGENTS",
        ),
        ("/config", "/plan.md", "/x/y", "/hooks/pre-commit"),
    )
    for prefix in ("", "./", ".//", "././")
]  # fmt: skip


def odd_names(room: Path) -> list[bytes]:
    """Make files with names that are no text, or none that may be shown as it is."""
    made: list[bytes] = []
    for raw in (
        b"\xff\xfe",
        b"a\nb",
        b"\x1b[2J",
        "\u202egnp.exe".encode(),
        b"a\rb",
        b"-rf",
        b"\xc3(",
    ):
        try:
            (Path(os.fsdecode(os.fsencode(room) + b"/" + raw))).write_bytes(b"x\n")
            made.append(raw)
        except OSError:  # a file system that takes no such name
            continue
    return made


async def test_names_that_are_no_text_are_listed_on_one_clean_line(cases: Cases, room: Path):
    made = odd_names(room)
    tools = tools_of(room)
    with cases.case("list_files"):
        listing = await call_tool(tools, "list_files", {})
        assert len(listing.split("\n")) == 1 + 2 + len(made)
        assert not any(is_raw(c) for c in listing), listing
    with cases.case("grep"):
        hits = await call_tool(tools, "grep", {"pattern": "x"})
        assert not any(is_raw(c) for c in hits), hits


# Traversal, by the thousand.

UP = (
    "..", "../.", "./..", "..//", "....//", "..../", ".../", "..\\", "..%2f", "%2e%2e", "%2e%2e/", "%252e%252e", "..%c0%af",
    "%c0%ae%c0%ae", "．．", "‥", "..;", "..\0", "..\n", "..\t", ". .", ".. ", " ..", "..\u200b", "\u202e..", "a/..", "sub/../..",
    "sub/./../..", "a.txt/..", "link-up", "chains/..", ".git/..", "..\u2044", "..∕", "..／", "..＼", "~", "~root", "$PWD/..",
)  # fmt: skip
BEGIN = (
    "", "/", "//", "./", "sub/", "sub/sub/", "/workspace/", "/proc/self/root", "/proc/self/cwd/", "/dev/fd/0/", "file:///", "file:",
    "C:\\", "\\\\?\\", "\\", "~/", "a.txt/", " /", "\t/", "\u200b/", "ws/", "../ws/",
)  # fmt: skip
END = ("/secret", "/ws-evil/secret", "/outside/a.txt", "/../etc/passwd", "secret", "")


def traversals() -> Iterator[str]:
    for depth in (1, 2, 3, 12):
        for begin, up, end in itertools.product(BEGIN, UP, END):
            yield begin + "/".join([up] * depth) + end


async def test_path_traversal_never_leaves_the_workspace(cases: Cases, room: Path, outside: Path):
    (room / "link-up").symlink_to("..")
    every = list(traversals())
    wanted = sized(small=120, ci=3000, full=len(every))
    paths = [every[number * len(every) // wanted] for number in range(wanted)]
    await try_all(paths, room, outside, cases)


# A process that swaps directories and files for links while the tools work.

TRIES = sized(small=600, ci=30_000, full=1_000_000)
SEARCHES_A_THOUSAND = 1
ON_SWAPPED: Sequence[tuple[str, Mapping[str, object]]] = (
    ("read_file", {"path": "sub/a.txt"}),
    ("read_file", {"path": "file"}),
    ("write_file", {"path": "sub/new.txt", "content": "planted"}),
    ("write_file", {"path": "file", "content": "planted"}),
    ("write_file", {"path": "sub/deep/er/new.txt", "content": "planted"}),
    ("edit_file", {"path": "sub/a.txt", "old": "i", "new": "i"}),
    ("edit_file", {"path": "file", "old": "i", "new": "i"}),
    ("delete_file", {"path": "sub/new.txt"}),
    ("delete_file", {"path": "sub/secret"}),
    ("read_file", {"path": "sub/secret"}),
    ("delete_file", {"path": "file"}),
    ("list_files", {"glob": "sub/**"}),
)


def attacking(command: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("attackers", [1, 2])
async def test_no_race_leaves_the_workspace(
    attackers: int, cases: Cases, room: Path, outside: Path
):
    write_files(room, {"file": "inside\n"})
    before = fingerprint(outside)
    command = [sys.executable, link_swapper.__file__, str(room), str(outside / "outside")]
    running = [attacking(command) for _ in range(attackers)]
    tools, rounds = tools_of(room), 0
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        for number in range(TRIES // 2):
            tool, arguments = ON_SWAPPED[number % len(ON_SWAPPED)]
            if number % 1000 < SEARCHES_A_THOUSAND:
                tool, arguments = "grep", {"pattern": "own|words", "glob": "sub/**"}
            said = await call_tool(tools, tool, arguments)
            if SECRET in said:
                cases.failures.append(f"{tool} {arguments}: {said}")
            else:
                cases.count()
    finally:
        for process in running:
            said = process.communicate("")[0]
            rounds += int(said.split()[-1])
    with cases.case("files outside"):
        now = fingerprint(outside)
        assert {k: v for k, v in now.items() if before.get(k) != v} == {}
        assert before.keys() == now.keys()
    with cases.case("the attacker was at work"):
        assert rounds > TRIES // 500
