"""Rules for deliverables: which changed paths are refused, and which are protected."""

from collections.abc import Sequence

from mimir.attempts.delivered_paths import DEFAULT_LIMITS, DeliverableLimits
from mimir.domain.globs import matches
from mimir.domain.invocation import NO_FILES
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause
from mimir.domain.value_class import value_class

HIDDEN = (".mimir", "chains", "generated-agents", "preambles")
"""Top-level folders of plans and other tasks: never part of a workspace or a deliverable."""
FORBIDDEN = ("mimir.toml", *(f"{name}/**" for name in HIDDEN))
"""Paths that a deliverable may not change: they would steer the engine's next run."""

AGENT_FILES = (
    ".agents/**",
    ".claude/**",
    ".github/agents/**",
    ".github/chatmodes/**",
    ".opencode/**",
)
"""Places of agent definitions: a deliverable changes them only if the task names them."""


@value_class
class DeliverableRefusal:
    """Refusal of a deliverable."""

    issues: tuple[str, ...]
    """Reasons, for the worker."""
    paths: tuple[str, ...]
    """Paths that must not change."""
    cause: Cause = Cause.REFUSED_DELIVERABLE


def refuse_deliverable(
    changed: Sequence[str],
    *,
    tool_table_changed: bool,
    links_out: Sequence[str],
    filtered: Sequence[str] = (),
    oversized: Sequence[str] = (),
    limits: DeliverableLimits = DEFAULT_LIMITS,
    files: Sequence[str] = (),
) -> DeliverableRefusal | None:
    """Refuse changes of the engine's own files and agent files, links out, too large work.

    `files` are the globs that the task may write; empty: any.
    """
    found = {
        path: f"The deliverable changes {path!r}, which steers mimir itself; leave it as it was."
        for path in changed
        if matches(path, FORBIDDEN)
    }
    for path in changed:
        if _is_unnamed_agent_file(path, files):
            found[path] = (
                f"The deliverable changes {path!r}, a place of agent definitions that the task's `files` do not name; leave it as it was."
            )
    if tool_table_changed:
        found["pyproject.toml"] = (
            "The deliverable changes [tool.mimir] in pyproject.toml; leave that table as it was."
        )
    for path in filtered:
        found[path] = (
            f"Git stores {path!r} through a filter (such as LFS or git-crypt), which does not run here; leave it as it was."
        )
    for path in oversized:
        found[path] = (
            f"The deliverable has more than {limits.megabytes} MB (`run.deliverable_mb`), most of them in {path!r}; leave that file out."
        )
    if len(changed) > limits.files:
        reason = f"The deliverable changes {len(changed):,} files, more than {limits.files:,} (`run.deliverable_files`); it was discarded."
        found = dict.fromkeys(changed, reason)
    # A link out of the workspace would let a later task change other files.
    for path in links_out:
        found[path] = (
            f"The symbolic link {path!r} leads out of the workspace, or to an ignored or hidden path; remove it."
        )
    issues = tuple(dict.fromkeys(found.values()))
    return DeliverableRefusal(issues=issues, paths=tuple(found)) if found else None


def _is_unnamed_agent_file(path: str, files: Sequence[str]) -> bool:
    """Return whether a path is in a place of definitions that no glob of the task names."""
    if not matches(path, AGENT_FILES):
        return False
    # A glob such as `**` matches the path, but does not name the place.
    top = path.partition("/")[0]
    return not matches(path, [glob for glob in files if glob.partition("/")[0] == top])


def refuse_unsettled(
    unsettled: Sequence[str], other: DeliverableRefusal | None
) -> DeliverableRefusal:
    """Refuse a deliverable that leaves conflicts unsettled, besides its other refusals."""
    issues = tuple(
        f"The conflict in {path!r} is not settled: a marker of it is left, or no call decided on it."
        for path in unsettled
    )
    return DeliverableRefusal(
        issues=(*issues, *(other.issues if other else ())),
        paths=(*unsettled, *(other.paths if other else ())),
        cause=Cause.INTEGRATION,
    )


def find_protected_changes(
    task: Task, changed: Sequence[str], in_base: Sequence[str]
) -> tuple[str, ...]:
    """Return the changed paths that a check protects; only files of the base can be protected."""
    # Only a file of the base can be restored before the checks.
    known = frozenset(in_base)
    return tuple(
        path
        for path in changed
        if path in known
        and any(matches(path, check.protect) for check in task.checks if check.protect)
    )


def find_silent_no_op(task: Task, changed: Sequence[str]) -> str | None:
    """Return the issue of a task that declares `files` and changed none of them, or None."""
    # Without declared files, an answer alone can be the deliverable.
    if (
        not task.files
        or task.files == (NO_FILES,)
        or any(matches(path, task.files) for path in changed)
    ):
        return None
    wanted = ", ".join(task.files)
    return (
        f"Nothing that matches {wanted} was changed, so there is no deliverable. "
        "Make the change with the file tools, or say what keeps you from it."
    )
