"""The run whose recording is shipped with the tests: three tasks, one of them tried twice, all of it in a few calls."""

from collections.abc import Sequence
from pathlib import Path

from mimir.domain.plan import Plan
from tests.support.whole_run import Part, calls, plan, step, worker, writes, wrote

FILE = Path(__file__).parents[1] / "replay" / "shipped.jsonl"
AGAIN = "If prompts, tools or the plan's form changed on purpose: make recordings"
README = {"README.md": "# Three small files\n"}


def run() -> tuple[Plan, Sequence[Part]]:
    """Return its plan, and the answers of the models."""
    made = plan(step("first"), step("second", "first", max_retries=1), step("third", "first"))
    look = {"calls": [calls("read_file", path="first.txt"), calls("list_files", glob="*")]}
    parts = [
        wrote("first"),
        worker("second", look, writes("second.txt", "wrong\n"), "Done.", attempt=1),
        wrote("second", attempt=2),
        worker("third", writes("third.txt", "third\n"), "third.txt is written."),
    ]
    return made, parts
