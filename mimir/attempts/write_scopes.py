"""Write scope of an attempt: the check surface of its base, and refused changes."""

import contextlib
from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from mimir.domain.globs import matches
from mimir.domain.plan import Plan, Task
from mimir.domain.value_class import value_class
from mimir.errors import RecordingMiss
from mimir.qc.scope.check_surface import CheckSurface, find_surface, is_build_file, is_config
from mimir.qc.scope.loaded_files import find_named_files, is_makefile, is_script
from mimir.qc.scope.test_owners import find_test_owners
from mimir.qc.scope.write_scope import NOTHING, WriteRefusal, refuse_write
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.trees import TreeChange

_MOST_TEXTS = 60
_TEXT_BYTES = 200_000
_MOST_CALLS = 3
"""Scripts that call scripts are followed so far."""


@value_class
class WriteScope:
    """Write scope of one task on one base."""

    task: Task
    surface: CheckSurface | None
    """None: a recording of an earlier version does not have it."""
    within: tuple[str, ...] = ()
    """Globs of the agent definition. Empty: it has none."""

    def refuse(self, path: str, gone: Container[str] = NOTHING) -> WriteRefusal | None:
        """Return the rule that refuses a change of a path; None: it is permitted."""
        if self.within and not matches(path, self.within):
            return WriteRefusal(rule="files", reason="is outside of the agent's files.")
        return refuse_write(path, self.task, self.surface, gone) if self.surface else None

    def with_installed(self, names: Collection[str]) -> "WriteScope":
        """Return the scope with these modules of installed packages."""
        if self.surface is None:
            return self
        roots = replace(self.surface.roots, installed=names)
        return replace(self, surface=replace(self.surface, roots=roots))


async def refuse_changes(
    scope: WriteScope, history: GitHistory, changes: Sequence[TreeChange]
) -> dict[str, WriteRefusal]:
    """Return the refused paths of a deliverable."""
    if scope.surface is None:
        return {}
    roots = scope.surface.roots
    new = [change.path for change in changes if change.status == "added"]
    # Only names of new modules are looked up: a recording must not list a whole environment.
    if names := sorted({name for path in new if (name := roots.module_at(path))}):
        scope = scope.with_installed(await history.find_installed(names))
    deleted = [change.path for change in changes if change.status == "deleted"]
    refused = {path: reason for path in deleted if (reason := scope.refuse(path))}
    gone = frozenset(deleted) - refused.keys()
    others = [change.path for change in changes if change.path not in gone]
    return {path: reason for path in others if (reason := scope.refuse(path, gone))}


async def load_write_scope(history: GitHistory, plan: Plan, task: Task, base: str) -> WriteScope:
    """Return the write scope of a task on a base tree."""
    checks = [check for one in plan.tasks for check in one.checks]
    texts: dict[str, str] = {}
    try:
        paths = await history.paths(base)
        for path in [path for path in paths if is_build_file(path)][:_MOST_TEXTS]:
            texts[path] = await _read_text(history, base, path)
    except RecordingMiss:
        return WriteScope(task=task, surface=None)
    known, commands = frozenset(paths), [" ".join(check.argv) for check in checks]
    # A recording of an earlier version does not have the scripts.
    with contextlib.suppress(RecordingMiss):
        for _ in range(_MOST_CALLS):
            called = {p: text for p, text in texts.items() if not is_config(p) or is_makefile(p)}
            named = sorted(filter(is_script, find_named_files(called, commands, known)))
            for path in [path for path in named if path not in texts][:_MOST_TEXTS]:
                texts[path] = await _read_text(history, base, path)
    owners = find_test_owners(plan)
    return WriteScope(task=task, surface=find_surface(owners, checks, paths, texts))


async def _read_text(history: GitHistory, tree: str, path: str) -> str:
    content = await history.file(tree, path) or b""
    return content[:_TEXT_BYTES].decode("utf-8", "replace")
