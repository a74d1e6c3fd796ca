"""Hidden and protected paths stay out of an agent's reach, with a reason in the refusal."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.errors import ToolError
from mimir.tools.builtin.files import FileTools
from mimir.tools.calls.failures import CallDenied
from mimir.tools.scope import PathScope, normalise_path
from mimir.workspace.paths import DirectoryTree
from tests.support.fake_tools import CONTEXT, wish
from tests.support.projects import write_files

HIDDEN = ("chains", ".mimir", "generated-agents", "preambles")
FORBIDDEN = ("mimir.toml", *(f"{name}/**" for name in HIDDEN))
WORKSPACE = {
    "limiter.py": "x = 1\n",
    "tests/test_limiter.py": "assert True\n",
    "chains/a/chain-output.md": "reasoning\n",
    "chains/shared.md": "context\n",
    ".mimir/mimir.db": "store\n",
    ".git/config": "[remote]\n",
    "sub/.git/config": "[remote]\n",
    "sub/chains/fine.md": "not at the top\n",
    "mimir.toml": "[run]\n",
}


@pytest.fixture
def tools(tmp_path: Path) -> FileTools:
    write_files(tmp_path / "ws", WORKSPACE)
    return FileTools(
        DirectoryTree(tmp_path / "ws"),
        PathScope(
            files=("limiter.py", "docs/**", "chains/**", "mimir.toml"),
            forbidden=FORBIDDEN,
            hidden=HIDDEN,
            allow_hidden=("./chains/shared.md",),
        ),
    )


NOT_THERE = (
    "Denied: '{}' is not part of the workspace of this task. "
    "Use list_files to see what is there, and work without it."
)
ENGINE = "Denied: '{}' belongs to the engine; no task may change it. Leave it as it is."
NOT_ITS = (
    "Denied: '{}' is not among the files of this task (limiter.py, docs/**, chains/**, mimir.toml). "
    "Make the change in one of those, or say in your answer why it is needed."
)
CLIMBS = "Denied: The path '{}' climbs with '..', which is not allowed. Give paths as list_files shows them."
ABSOLUTE = (
    "Denied: The path '{}' is not relative to the workspace. Give paths as list_files shows them."
)

READS = {
    "chains/a/chain-output.md": NOT_THERE,
    "./chains//a/chain-output.md": NOT_THERE.format("chains/a/chain-output.md"),
    "CHAINS/a/chain-output.md": NOT_THERE,
    "ｃhains/a": NOT_THERE,
    ".mimir/mimir.db": NOT_THERE,
    ".git/config": NOT_THERE,
    "sub/.git/config": NOT_THERE,
    ".GIT/config": NOT_THERE,
    "../outside": CLIMBS,
    "sub/../../outside": CLIMBS,
    "..": CLIMBS,
    "/etc/passwd": ABSOLUTE.format("/etc/passwd"),
    "/workspace/chains/a/x": NOT_THERE.format("chains/a/x"),
    "/workspace/../outside": CLIMBS.format("../outside"),
    "/workspace//etc/passwd": ABSOLUTE.format("/etc/passwd"),
    "~/.ssh/id_rsa": ABSOLUTE.format("~/.ssh/id_rsa"),
}


@pytest.mark.parametrize(("path", "said"), READS.items(), ids=READS)
async def test_read_outside_the_scope_is_denied(tools: FileTools, path: str, said: str):
    result = await tools.call(wish("read_file", {"path": path}), CONTEXT)
    assert result.text == said.format(path)
    assert result.denied


WRITES = {
    "tests/test_limiter.py": NOT_ITS,
    "chains/a/chain-output.md": ENGINE,
    "chains/shared.md": ENGINE,
    "Chains/x": ENGINE,
    "mimir.toml": ENGINE,
    "MIMIR.TOML": ENGINE,
    ".git/hooks/pre-commit": ENGINE,
    "docs/.git/config": ENGINE,
    "preambles/worker.md": ENGINE,
    "docs/../mimir.toml": CLIMBS,
    "/workspace/chains/a/x": ENGINE.format("chains/a/x"),
    "/workspace/../outside": CLIMBS.format("../outside"),
    "/workspace//etc/passwd": ABSOLUTE.format("/etc/passwd"),
}


@pytest.mark.parametrize(("path", "said"), WRITES.items(), ids=WRITES)
@pytest.mark.parametrize("tool", ["write_file", "edit_file", "delete_file"])
async def test_write_outside_the_scope_is_denied(
    tools: FileTools, tmp_path: Path, path: str, said: str, tool: str
):
    arguments = {
        "write_file": {"path": path, "content": "planted"},
        "edit_file": {"path": path, "old": "e", "new": "planted"},
        "delete_file": {"path": path},
    }[tool]
    result = await tools.call(wish(tool, arguments), CONTEXT)
    assert result.text == said.format(path)
    assert result.denied
    found = {p.relative_to(tmp_path / "ws").as_posix(): p.read_text() for p in files_in(tmp_path)}
    assert found == WORKSPACE


def files_in(path: Path) -> list[Path]:
    return [p for p in path.rglob("*") if p.is_file()]


async def test_hidden_folders_are_not_listed_or_searched(tools: FileTools):
    listing = await tools.call(wish("list_files", {}), CONTEXT)
    assert listing.text.split("\n") == [
        "5 files", "chains/shared.md", "limiter.py", "mimir.toml", "sub/chains/fine.md", "tests/test_limiter.py",
    ]  # fmt: skip
    hits = await tools.call(wish("grep", {"pattern": "reasoning|store|remote|context"}), CONTEXT)
    assert hits.text == "1 matching line\nchains/shared.md:1: context"


async def test_a_hidden_file_that_is_listed_as_context_is_readable(tools: FileTools):
    result = await tools.call(wish("read_file", {"path": "chains/shared.md"}), CONTEXT)
    assert result.text == "chains/shared.md, lines 1 to 1 of 1\ncontext"


async def test_nothing_is_followed_out_of_the_workspace(tmp_path: Path):
    # Given links, a FIFO and a hard link that lead out or would wait
    (tmp_path / "outside.txt").write_text("outside")
    room = tmp_path / "ws"
    write_files(room, {"a.txt": "inside\n"})
    (room / "link.txt").symlink_to(tmp_path / "outside.txt")
    (room / "up").symlink_to("..")
    (room / "hard.txt").hardlink_to(tmp_path / "outside.txt")
    os.mkfifo(room / "pipe")
    tools = FileTools(DirectoryTree(room))

    for path in ("link.txt", "up/outside.txt", "pipe", "up", "."):
        read = await tools.call(wish("read_file", {"path": path}), CONTEXT)
        wrote = await tools.call(wish("write_file", {"path": path, "content": "x"}), CONTEXT)
        assert read.is_error, path
        assert wrote.is_error, path
        assert "outside" not in read.text.replace("up/outside.txt", "")
        assert str(tmp_path) not in read.text + wrote.text
    hard = await tools.call(wish("write_file", {"path": "hard.txt", "content": "x"}), CONTEXT)
    assert hard.is_error

    assert (tmp_path / "outside.txt").read_text() == "outside"
    listing = await tools.call(wish("list_files", {}), CONTEXT)
    assert listing.text == "2 files\na.txt\nhard.txt"


def normal_or_refusal(path: str) -> str | ToolError:
    try:
        return normalise_path(path)
    except ToolError as error:
        return error


@given(
    st.lists(
        st.sampled_from(
            ["..", ".", "", "a", "chains", "Chains", ".git", "\0", "x" * 300, "é", "~"]
        ),
        max_size=6,
    )
)
def test_normalised_path_stays_below_the_root(parts: list[str]):
    path = "/".join(parts)
    plain = normal_or_refusal(path)
    if isinstance(plain, ToolError):
        assert str(plain).isprintable()
        return
    assert plain == normalise_path(plain)
    assert not {"", ".", ".."} & set(plain.split("/"))
    assert os.path.normpath(f"/ws/{path}") == f"/ws/{plain}"


@pytest.mark.parametrize("path", ["", ".", "./", "a\0b", "x" * 256, "a/" * 600 + "b"])
def test_path_without_a_file_name_is_refused(path: str):
    with pytest.raises(ToolError) as refused:
        normalise_path(path)
    assert not isinstance(refused.value, CallDenied)


async def test_a_protected_test_cannot_be_edited(tmp_path: Path):
    write_files(tmp_path, {"tests/test_a.py": "assert False\n", "tests/other.py": ""})
    tools = FileTools(
        DirectoryTree(tmp_path), PathScope(files=("tests/**",), protected=("tests/test_a.py",))
    )
    change = {"path": "tests/test_a.py", "old": "False", "new": "True"}
    result = await tools.call(wish("edit_file", change), CONTEXT)
    assert result.denied
    assert result.text == (
        "Denied: 'tests/test_a.py' is protected: a check of this task stands on it, and it is restored before the "
        "check runs. Make the check pass by changing the code that it tests."
    )
    assert (tmp_path / "tests/test_a.py").read_text() == "assert False\n"
    other = {"path": "tests/other.py", "content": "x"}
    assert not (await tools.call(wish("write_file", other), CONTEXT)).is_error


def test_without_declared_files_all_but_the_engines_may_be_written():
    scope = PathScope(forbidden=FORBIDDEN, hidden=HIDDEN)
    scope.require_writable("anything/at/all.py")
    with pytest.raises(CallDenied):
        scope.require_writable("chains/x")
