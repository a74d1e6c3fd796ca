"""Tools without a reference are freed at once, with all their objects: thousands of attempts do not wait for the garbage collector."""

import gc
import weakref

from mimir.tools.builtin.artifacts import ArtifactTools
from mimir.tools.builtin.files import FileTools
from mimir.tools.builtin.memory import MemoryTools
from mimir.tools.builtin.shell import RunTool
from mimir.workspace.paths import DirectoryTree


def test_tools_are_freed_with_their_last_reference(tmp_path):
    makers = (
        lambda: FileTools(DirectoryTree(tmp_path)),
        lambda: RunTool(None, tmp_path),
        lambda: ArtifactTools(None, ()),
        lambda: MemoryTools(None),
    )
    gc.disable()
    try:
        left = [weakref.ref(make())() for make in makers]
    finally:
        gc.enable()

    assert left == [None] * 4
