"""Tools that nobody holds are gone at once, with all that they hold: thousands of attempts are not left to the garbage collector."""

import gc
import weakref

from mimir.tools.builtin.artifacts import ArtifactTools
from mimir.tools.builtin.files import FileTools
from mimir.tools.builtin.memory import MemoryTools
from mimir.tools.builtin.shell import RunTool
from mimir.workspace.paths import DirectoryTree


def test_tools_are_gone_with_the_last_who_held_them(tmp_path):
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
