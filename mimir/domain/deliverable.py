"""Deliverable of an attempt, stored for a resume. Pure."""

from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class


# Field names are stored: the codec writes them into the attempt's JSON.
@value_class
class Deliverable:
    """Deliverable of an attempt: the worker's answer and its changes."""

    answer: str
    base_commit: str
    """Commit of the run branch that the attempt started from."""
    base_tree: str
    tree: str
    """Equal to `base_tree` if nothing was changed."""
    commit: str = ""
    """Empty: nothing was changed; the verdict is on the answer."""
    changed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Changes outside the task's `files`; not in the deliverable."""
    protected: tuple[str, ...] = ()
    """Protected files that were changed; restored before the checks run."""
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Citations in the answer that the tool log does not contain."""
    tripped: str = ""
    """Limit that tripped, when, and the limits that remained. Empty: none."""
    tool_calls: int = 0
    messages: int = 0
    usage: TokenUsage = TokenUsage()
    ledger: tuple[tuple[int, str, str], ...] = ()
    """Tool log: (number, tree, bounded text) of each call. QC quotes it as `call:<number>`."""
    cited_arguments: tuple[tuple[int, str], ...] = ()
    """(number, bounded arguments) of each call that the answer cites."""
