"""The contract of every `Toolset`, tested on each existing one, and on the gateway in front of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimir.domain.agent import ALL_TOOLS
from mimir.domain.message import ToolCall, ToolResult
from mimir.tools.builtin.artifacts import ArtifactTools
from mimir.tools.builtin.files import FileTools
from mimir.tools.builtin.memory import MemoryTools
from mimir.tools.builtin.shell import RunTool
from mimir.tools.gateway import Gateway
from mimir.tools.protocol import Toolset
from mimir.tools.scope import PathScope
from mimir.tools.secrets import Redactor
from mimir.workspace.paths import DirectoryTree
from tests.support.fake_tools import (
    CONTEXT,
    FakeArtifacts,
    FakeLane,
    FakeMemory,
    FakeRan,
    FakeSandbox,
    wish,
)
from tests.support.projects import write_files

WORKSPACE = {"a.py": "x = 1\n", "src/b.py": "y = 2\n", "chains/plan.md": "reasoning\n"}
MAX_CHARS = 21_000
"""A page and the words around it."""


def file_tools(where: Path) -> Toolset:
    write_files(where, WORKSPACE)
    return FileTools(DirectoryTree(where), PathScope(files=("a.py", "new/**"), hidden=("chains",)))


def run_tool(where: Path) -> Toolset:
    return RunTool(FakeSandbox(FakeRan(output="said\n" * 9_000)), where)


def artifact_tools(where: Path) -> Toolset:
    return ArtifactTools(FakeArtifacts({"r/t/1/answer": "words " * 9_000}), ("r/t/1/answer",))


def memory_tools(where: Path) -> Toolset:
    return MemoryTools(FakeMemory(*({"id": f"n{i}", "text": "x" * 3_000} for i in range(50))))


def all_behind_the_gateway(where: Path) -> Toolset:
    made = (file_tools, run_tool, artifact_tools, memory_tools)
    return Gateway(
        [make(where) for make in made],
        granted=ALL_TOOLS,
        transcript=FakeLane(),
        redact=Redactor(["s3cret-value"]),
    )


BUILDERS = (file_tools, run_tool, artifact_tools, memory_tools, all_behind_the_gateway)


@pytest.fixture(params=BUILDERS, ids=lambda make: make.__name__)
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Toolset:
    make: Callable[[Path], Toolset] = request.param
    return make(tmp_path / "ws")


def test_all_tools_of_the_table_exist(tmp_path: Path):
    assert [spec.name for spec in all_behind_the_gateway(tmp_path).specs] == list(ALL_TOOLS)


def test_descriptions_are_short_and_always_the_same(tools: Toolset):
    assert tools.specs == tools.specs
    names = [spec.name for spec in tools.specs]
    assert len(names) == len(set(names))
    for spec in tools.specs:
        assert 10 < len(spec.description) < 250
        assert spec.input_schema["type"] == "object"
        assert spec.input_schema["additionalProperties"] is False
        assert set(spec.input_schema["required"]) <= set(spec.input_schema["properties"])  # type: ignore[call-overload]
        json.dumps(spec.input_schema)


async def test_an_unknown_tool_is_a_result(tools: Toolset):
    result = await tools.call(wish("no_such_tool"), CONTEXT)
    assert result.is_error
    assert "There is no tool 'no_such_tool'." in result.text


@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "null", '{"a": NaN}', "[" * 9_000, "\ud800", "x" * 2_000_000]
)
async def test_bad_arguments_are_a_result(tools: Toolset, raw: str):
    for spec in tools.specs:
        if raw == "" and not spec.input_schema["required"]:
            continue
        result = await tools.call(ToolCall(id="1", name=spec.name, arguments=raw), CONTEXT)
        assert result.is_error, spec.name
        assert result.text.startswith("Error: ")
        assert len(result.text) < 1_000


PATHS = st.sampled_from(
    [
        "a.py",
        "src/b.py",
        "chains/plan.md",
        "../x",
        "/etc/passwd",
        "new/c.txt",
        ".",
        "src",
        "\0",
        "x" * 300,
        "é",
    ]
)
TEXTS = PATHS | st.text(max_size=30)
VALUES = TEXTS | st.integers(-5, 10**12) | st.booleans() | st.none() | st.lists(TEXTS, max_size=3)
NAMES = [
    "path",
    "offset",
    "limit",
    "glob",
    "pattern",
    "content",
    "old",
    "new",
    "argv",
    "command",
    "timeout_seconds",
    "id",
    "text",
    "labels",
    "label",
    "filters",
    "types",
    "direction",
    "depth",
]
ARGUMENTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(arguments=ARGUMENTS, chosen=st.integers(0, 12))
async def test_each_tool_call_returns_bounded_text(
    tools: Toolset, arguments: dict[str, object], chosen: int
):
    spec = tools.specs[chosen % len(tools.specs)]
    known = set(spec.input_schema["properties"])  # type: ignore[call-overload]
    fitting = {name: value for name, value in arguments.items() if name in known}
    for sent in (arguments, fitting):
        result = await tools.call(wish(spec.name, sent), CONTEXT)
        assert isinstance(result, ToolResult)
        assert len(result.text) <= MAX_CHARS
        assert result.text.encode()
        assert not result.denied or result.is_error


async def test_read_only_tool_changes_no_file(tools: Toolset, tmp_path: Path):
    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    before = state()
    sent = {"path": "a.py", "pattern": "x", "id": "n1", "text": "x", "label": "Memory"}
    for spec in tools.specs:
        known = set(spec.input_schema["properties"])  # type: ignore[call-overload]
        if spec.read_only:
            await tools.call(
                wish(spec.name, {k: v for k, v in sent.items() if k in known}), CONTEXT
            )
    assert state() == before
