"""Deliverables of a task, restricted to its write scope as an attempt restricts them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimir.attempts.deliverable import find_protected_changes
from mimir.attempts.write_scopes import load_write_scope, refuse_changes
from mimir.domain.plan import Check, Plan, Task
from tests.support.fake_trees import FakeHistory


@dataclass(frozen=True, kw_only=True)
class ScopedDeliverable:
    tree: str
    changed: list[str]
    notes: tuple[str, ...]
    """Text for the worker about refused changes."""


async def restrict(history: Any, task: Task, base: str, tree: str) -> ScopedDeliverable:
    """Leave out the changes that the write scope of a one-task plan refuses."""
    scope = await load_write_scope(history, Plan(title="P", tasks=(task,)), task, base)
    changes = await history.diff_trees(base, tree)
    in_base = [change.path for change in changes if change.status != "added"]
    protected = find_protected_changes(task, in_base, in_base)
    refused = await refuse_changes(scope, history, changes)
    refused = {path: why for path, why in refused.items() if path not in protected}
    if refused:
        tree = await history.with_files(tree, base, tuple(refused))
    changed = [change.path for change in await history.diff_trees(base, tree)]
    return ScopedDeliverable(
        tree=tree,
        changed=changed,
        notes=tuple(why.message(path) for path, why in refused.items()),
    )


async def find_left_out(
    check: Check,
    base: Mapping[str, str],
    changes: Mapping[str, str],
    files: tuple[str, ...] = (),
) -> set[str]:
    """Return the changed paths that are not in the deliverable of a task with one check."""
    history = FakeHistory()
    before, tree = history.put(base), history.put({**base, **changes})
    task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(check,), files=files)
    work = await restrict(history, task, before, tree)
    return changes.keys() - set(work.changed)
