"""Fixtures of several tests of tools."""

from pathlib import Path

import pytest

from mimir.domain.message import ToolSpec
from mimir.tools.builtin.artifacts import ArtifactTools
from mimir.tools.builtin.files import FileTools
from mimir.tools.builtin.memory import MemoryTools
from mimir.tools.builtin.shell import RunTool
from mimir.workspace.paths import DirectoryTree
from tests.support.fake_tools import FakeArtifacts, FakeMemory, FakeRan, FakeSandbox


@pytest.fixture
def all_specs(tmp_path: Path) -> tuple[ToolSpec, ...]:
    """The descriptions of all tools that there are."""
    toolsets = (
        FileTools(DirectoryTree(tmp_path)),
        RunTool(FakeSandbox(FakeRan()), tmp_path),
        ArtifactTools(FakeArtifacts({}), ()),
        MemoryTools(FakeMemory()),
    )
    return tuple(spec for toolset in toolsets for spec in toolset.specs)
